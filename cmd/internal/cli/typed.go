package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// typed says what is about to be done, and goes on when a person types the name.
func (r *root) typed(name, what string) error {
	fmt.Fprintf(r.Stderr, "%s Type %s to go on: ", printable(what), printable(name))
	answer, err := bufio.NewReader(r.Stdin).ReadString('\n')
	if strings.TrimSpace(answer) == name {
		return nil
	}
	if err != nil {
		fmt.Fprintln(r.Stderr)
	}
	return &api.Error{Code: api.CodeFailed, Message: "not confirmed: nothing was done"}
}
