package component

import (
	"fmt"
	"strings"
)

// PollLock is the name of a component's poll lock: whoever holds it queries and claims.
func PollLock(component string) string { return "/SBOI/" + component }

// ItemLock is the name of the claim on an item's round trip.
func ItemLock(component, item string, roundTrip int) string {
	return fmt.Sprintf("/%s/B%s-RT%d", component, item, roundTrip)
}

// RunLock is the name of one of a component's run locks on a node: whoever holds it may run there. Seats count from 0.
func RunLock(component, node string, seat int) string {
	return fmt.Sprintf("/RUN/%s/%s/%d", component, node, seat)
}

// checkName refuses what would make two locks one.
func checkName(what, name string) error {
	if name == "" || len(name) > 128 || strings.ContainsAny(name, "/ \t\r\n") {
		return fmt.Errorf("%s %q: want 1 to 128 characters, no slash, no space", what, name)
	}
	return nil
}
