package signals

import (
	"bytes"
	"context"
	"time"
)

// Signal tells an action what happened. A signal never changes: what its methods return belongs to the caller, so an
// action that writes into it disturbs no other.
//
// Acquire and Release exist on every signal, so that an action can be written in one way. They mean something on a
// FailureRecoverySignal only; on any other they succeed at once: the fence has token 0, guards nothing and has no work
// (its Adopt, Free and End answer ErrNotAcquired).
type Signal interface {
	// Kind says what happened, and so what the signal is: *Message, FailureRecoverySignal, else *Notice.
	Kind() Kind
	// Facts is what is known about the event: member, views, group.
	Facts() Facts
	// Acquire raises the fence of a recovery, and may block; errors: see FailureRecoverySignal. nil on every other signal.
	Acquire(ctx context.Context) (Fence, error)
	// Release lowers the fence of a recovery and ends it; errors: see FailureRecoverySignal. nil on every other signal.
	Release(ctx context.Context) error
}

// Facts is what a signal says, whatever its kind. Fields that a kind does not use are zero.
type Facts struct {
	Kind         Kind      // what happened
	Group        string    // name of the group that says so
	Member       Member    // whom it is about; of a message, its sender
	StartTime    time.Time // Member.StartTime
	Position     uint64    // position in the log of what caused it; 0 for messages and quorum marks
	View         View      // view after the event
	PreviousView View      // view before it; equal to View when the event changed no view

	// JoinedAndReadyNotification, FailureNotification and PlannedShutdown: the members that had reported themselves ready,
	// after the event and before it.
	ReadyView, PreviousReadyView View
	// Gap: what lies between PreviousView and View is not known as signals: this member was away for too long.
	Gap bool

	Rejoin   bool     // JoinNotification: an earlier run of the same node was closed
	Evidence Evidence // FailureNotification, FailureRecovery, PlannedShutdown: why the run was closed
	Shutdown Shutdown // PlannedShutdown: its sub-type
	Phase    Phase    // GroupStartup, GroupShutdown: which mark
	Why      string   // one sentence for people; may be empty
}

// Clone is a copy that shares nothing with f.
func (f Facts) Clone() Facts {
	f.Member = f.Member.Clone()
	f.View = f.View.Clone()
	f.PreviousView = f.PreviousView.Clone()
	f.ReadyView = f.ReadyView.Clone()
	f.PreviousReadyView = f.PreviousReadyView.Clone()
	return f
}

// Notice is the signal of every kind that is neither a message nor a recovery, and the base of those two.
type Notice struct {
	facts Facts
}

var (
	_ Signal = (*Notice)(nil)
	_ Signal = (*Message)(nil)
)

// NewNotice makes a signal of a copy of facts.
func NewNotice(facts Facts) *Notice { return &Notice{facts: facts.Clone()} }

// Kind says what the signal tells.
func (n *Notice) Kind() Kind { return n.facts.Kind }

// Facts is a copy of what the signal says.
func (n *Notice) Facts() Facts { return n.facts.Clone() }

// Acquire succeeds and means nothing: see Signal. The error is nil.
func (n *Notice) Acquire(ctx context.Context) (Fence, error) { return noFence{ctx}, nil }

// Release succeeds and means nothing: see Signal. The error is nil.
func (n *Notice) Release(context.Context) error { return nil }

// Message is the signal of kind MessageReceived.
type Message struct {
	*Notice
	component string
	payload   []byte
}

// NewMessage makes the signal of a message to component. The kind in facts is set; payload is copied.
func NewMessage(facts Facts, component string, payload []byte) *Message {
	facts.Kind = MessageReceived
	return &Message{Notice: NewNotice(facts), component: component, payload: bytes.Clone(payload)}
}

// Component is the name of the component the message is for.
func (m *Message) Component() string { return m.component }

// Payload is a copy of the bytes sent.
func (m *Message) Payload() []byte { return bytes.Clone(m.payload) }
