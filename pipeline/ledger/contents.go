package ledger

import (
	"encoding/json"
	"time"
)

// Contents are all that a ledger holds, as one kind hands it to another. Both kinds read and write them whole, while nobody
// works with the ledger.
type Contents struct {
	Tasks   []Task            // those that have ended too, each with its cancel request (CancelBy)
	Backups []Backup          // gone ones too
	Logs    map[string]Log    // by task; a task without one has an empty log
	Errors  []TaskError       // that nobody has handled; their Seq is made anew
	Items   []json.RawMessage // of autonomous components, as package component keeps them; passed on unread
	Steps   map[string][]Step // by task, oldest first; nil: of a kind of ledger that keeps none
}

// Step is one entry of a task's history: the state that it entered, by whom.
type Step struct {
	At      time.Time // by the clock of the ledger
	State   State
	Attempt int
	Token   uint64 // 0 for the planning
	Node    string
}

// Highest is the highest token in them.
func (c Contents) Highest() (token uint64) {
	for _, t := range c.Tasks {
		token = max(token, t.Token)
	}
	for _, b := range c.Backups {
		token = max(token, b.Token)
	}
	return token
}

// Begun are the tasks that have begun and not ended.
func Begun(tasks []Task) (begun []Task) {
	for _, t := range tasks {
		if t.State != Planned && !t.State.Final() {
			begun = append(begun, t)
		}
	}
	return begun
}
