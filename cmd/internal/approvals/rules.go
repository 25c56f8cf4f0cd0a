package approvals

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Needed are the operations of a request that need a second person, and how long it waits for one at most: the shortest of
// what is set for them. set are the settings by operation. Pure.
func Needed(set map[string]time.Duration, operations []string) (needed []string, within time.Duration) {
	shortest := func(d time.Duration) {
		if within == 0 || d < within {
			within = d
		}
	}
	for _, op := range operations {
		if d, ok := set[op]; ok && !slices.Contains(needed, op) {
			needed = append(needed, op)
			shortest(d)
		}
	}
	if len(set) > 0 && slices.Contains(operations, api.ApproveRules) {
		needed = append(needed, api.ApproveRules)
		for d := range maps.Values(set) {
			shortest(d)
		}
	}
	return needed, within
}

// OfSettings are the operations that changes of settings amount to. Pure.
func OfSettings(changes []api.SettingChange) (operations []string) {
	for _, c := range changes {
		switch {
		case c.Kind == "storage":
			operations = append(operations, api.ApproveStorage)
		case c.Kind == "approval":
			operations = append(operations, api.ApproveRules)
		case c.Kind == "retention" && c.Change != api.SettingRemoved, // without a rule everything is kept
			c.Kind == "server" && c.Change == api.SettingChanged && slices.Contains(c.Keys, "retention"):
			operations = append(operations, api.ApproveDelete)
		}
	}
	slices.Sort(operations)
	return slices.Compact(operations)
}

// SameAccount tells whether two actors are one person as far as can be known: a user, by whatever session or token, and the
// system's user of that name at a node's socket.
func SameAccount(a, b string) bool {
	return strings.TrimPrefix(a, "local:") == strings.TrimPrefix(b, "local:")
}

// May says why an actor may not approve a request; nil: they may, as far as who they are is concerned. account is that of the
// actor as it is now; for one who came over the socket it is not looked at. Pure.
func May(a Request, by accounts.Actor, account api.User) error {
	if err := a.open(); err != nil {
		return err
	}
	refused := func(message, hint string) error {
		return &api.Error{Code: api.CodeForbidden, Message: message, Hint: hint}
	}
	switch {
	case by.Via == accounts.ViaSocket:
		return refused("over the socket nobody approves anything: it does not say which person asks", "log in on the page, or use a token of your own that approves")
	case SameAccount(a.By, by.Name):
		return refused("it takes a second person: "+by.Name+" has asked for it", "somebody else has to approve it; you can withdraw it")
	case !by.Approves:
		return refused("this token does not approve", "log in on the page, or make a token there that approves")
	case account.Changed.After(a.Created):
		return refused(fmt.Sprintf("the account %s was made, or its password or role was changed, after this was asked for", by.Name), "somebody else can approve it, or it is asked for again")
	}
	return nil
}

// open says why nobody can decide about a request any more.
func (a Request) open() error {
	if a.Waits() {
		return nil
	}
	text := "the request " + a.ID + " does not wait any more: it is " + a.State
	if a.DecidedBy != "" {
		text += ", by " + a.DecidedBy
	}
	return &api.Error{Code: api.CodeConflict, Message: text, Hint: "who wants it asks for it again"}
}
