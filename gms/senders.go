package gms

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/rpc"
	"github.com/fencepost/fencepost/gms/internal/state"
)

// errNotSender: what a call says is for another node to say. Whoever is at the other end has proven one name, and a
// certificate of the group speaks for no other (FIELD.md R31).
var errNotSender = errors.New("the call speaks for another node than its sender")

// voice is in whose name a call speaks.
type voice int

const (
	voiceNone   voice = iota // it asks, or tells what all members may know: any member
	voiceOwn                 // in its sender's: its handler holds the sender against what it names
	voiceSigned              // in the name of whoever has signed it, and anybody may bring it
)

// voiceOf says how each call speaks; false for one of which that was not decided, which nobody may make.
func voiceOf(method string) (voice, bool) {
	switch method {
	case "Submit", "Session", "Tell", "HomePosition":
		return voiceOwn, true
	case "Announce", "Renew", "Report":
		return voiceSigned, true
	case "Ping", "Probe", "ReadIndex", "Follow", "Keyring":
		return voiceNone, true
	}
	return voiceNone, false
}

// admitCall lets a call through to its handler.
func admitCall(method string, from rpc.Peer) error {
	if _, decided := voiceOf(method); !decided || from.Node == "" {
		return fmt.Errorf("%w: %s", errNotSender, method)
	}
	return nil
}

// sender is the node that calls.
func sender(ctx context.Context) string {
	p, _ := rpc.PeerFrom(ctx)
	return p.Node
}

// speaksFor tells whether a node may speak for a run: it is the node's, or it is not known here, and the log will say so.
func (g *Group) speaksFor(node string, id state.RunID) (own bool) {
	g.rep.read(func(m *state.Machine) {
		run, known := m.Run(id)
		own = !known || run.Node() == node
	})
	return own
}
