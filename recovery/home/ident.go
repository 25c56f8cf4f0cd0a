package home

import "fmt"

// Ident tells one process from all others, also from a later one with the same number.
type Ident struct {
	Boot  string `json:"boot"`          // id of this start of the machine; empty where the system has none
	PIDNS string `json:"pid_ns"`        // the pid namespace, in which PID counts
	PID   int    `json:"pid"`           // its number there
	Start uint64 `json:"start"`         // when it started, in the kernel's ticks since the machine did; 0 where unknown
	Run   string `json:"run,omitempty"` // the run id that it was given
}

// String is for logs and causes.
func (i Ident) String() string {
	if i.Run == "" {
		return fmt.Sprintf("process %d", i.PID)
	}
	return fmt.Sprintf("process %d of run %s", i.PID, i.Run)
}

// Liveness is what can be said about a process.
type Liveness string

// What can be said. Unknown counts as alive wherever something is decided.
const (
	Alive   Liveness = "alive"
	Dead    Liveness = "dead"
	Unknown Liveness = "unknown"
)
