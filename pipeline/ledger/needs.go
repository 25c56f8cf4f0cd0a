package ledger

import (
	"errors"
	"fmt"
)

// Bounds of Needs.
const (
	MaxLabels = 16 // labels of one task
	MaxLabel  = 64 // bytes of one
)

// Needs are what a node must have to carry a task out, beside that it is configured for the task's database and storages
// and can reach them. The zero value asks for nothing.
type Needs struct {
	Labels []string `json:"labels,omitempty"` // that the node carries, all of them
	Client int      `json:"client,omitempty"` // major version of the client programs for the database, at least; 0 = any
}

// Check says what is wrong with n.
func (n Needs) Check() error {
	if len(n.Labels) > MaxLabels {
		return fmt.Errorf("needs %d labels: at most %d", len(n.Labels), MaxLabels)
	}
	for _, l := range n.Labels {
		if l == "" || len(l) > MaxLabel {
			return fmt.Errorf("label %q: need 1 to %d bytes", l, MaxLabel)
		}
	}
	if n.Client < 0 {
		return errors.New("needs a version below 0")
	}
	return nil
}
