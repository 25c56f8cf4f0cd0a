package embedded

import (
	"context"
	"fmt"
)

// MaxValue is the largest value of one key, in bytes.
const MaxValue = 64 << 10

// Item is one key with its value. Version 0 means that the key is absent.
type Item struct {
	Key     string
	Value   []byte // not to be modified
	Version uint64
}

// Kind says what a Condition demands.
type Kind int

// Kinds of conditions.
const (
	VersionIs Kind = iota + 1 // Key has Version (0: absent)
	RunOpen                   // Run is open
	ClaimHeld                 // Run holds the claim on (Component, Item), or adopted it, with Token
	FenceHeld                 // the fence on (Component, Node, Run) is held with Token
)

// Condition must hold where a transaction is applied. Fields that its Kind does not name are zero.
type Condition struct {
	Kind      Kind
	Key       string
	Version   uint64
	Component string
	Item      string
	Node      string
	Run       string // hex; for FenceHeld the dead run
	Token     uint64
}

// String names the condition for errors and logs.
func (c Condition) String() string {
	switch c.Kind {
	case VersionIs:
		return fmt.Sprintf("version of %s is %d", c.Key, c.Version)
	case RunOpen:
		return fmt.Sprintf("run %s is open", c.Run)
	case ClaimHeld:
		return fmt.Sprintf("run %s holds claim %s/%s with token %d", c.Run, c.Component, c.Item, c.Token)
	case FenceHeld:
		return fmt.Sprintf("fence on %s of %s (run %s) is held with token %d", c.Component, c.Node, c.Run, c.Token)
	}
	return fmt.Sprintf("condition of kind %d", int(c.Kind))
}

// Put sets a key.
type Put struct {
	Key   string
	Value []byte // at most MaxValue bytes; the Store keeps it
	Row   any    // that Value is the encoding of, for a Store whose readers may be of different versions
}

// Txn is applied whole when every condition holds, else not at all. An absent key in Deletes is no error.
type Txn struct {
	Conditions []Condition
	Puts       []Put
	Deletes    []string
}

// ConditionError is Commit's answer when a condition did not hold: nothing was changed.
type ConditionError struct {
	Condition Condition // the first one that did not hold
}

// Error implements error.
func (e *ConditionError) Error() string { return "not so: " + e.Condition.String() }

// Store is the replicated map that the ledger lives in. Methods are safe for concurrent use and may block until ctx
// ends. Reads are linearizable. An error that is neither *ConditionError nor ErrFull means: not
// reached, or outcome unknown.
type Store interface {
	// Get reads one key; an absent one is an Item of Version 0, not an error.
	Get(ctx context.Context, key string) (Item, error)
	// List reads all keys that begin with prefix, at one position, in order of key.
	List(ctx context.Context, prefix string) ([]Item, error)
	// Commit applies a transaction; *ConditionError when a condition did not hold, ErrFull when there is no room for it.
	Commit(ctx context.Context, t Txn) error
	// Watch returns a channel that gets a value after changes below prefix, coalesced, until ctx ends. A hint.
	Watch(ctx context.Context, prefix string) <-chan struct{}
}
