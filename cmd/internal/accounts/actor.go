package accounts

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Ways in which somebody comes.
const (
	ViaSocket  = "socket"
	ViaSession = "session"
	ViaToken   = "token"
)

// Actor is who asks for something.
type Actor struct {
	Name    string   // of the user; at the socket "local:" and the name or number of the system's user
	Role    api.Role // what they may do now
	Most    api.Role // what they may do at most with what they are bound to: that of a token; empty: no bound
	Via     string
	Token   string    // id of the token, when they came with one
	Session string    // id of the session, when they came with one
	Address string    // of the network that they came from; empty at the socket
	Ends    time.Time // of the session or the token, at the latest; zero at the socket
	// Approves: it is known which person asks, so that they can be the second one of an approval: those who are logged in,
	// and tokens that they have made for it.
	Approves bool
}

// key is the context's key of an Actor.
type key struct{}

// With gives a context in which a is who asks.
func With(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, key{}, a) }

// Of is who asks; false when nobody has said.
func Of(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(key{}).(Actor)
	return a, ok
}
