package gossip

import (
	"errors"

	"github.com/hashicorp/memberlist"
)

// aliveDelegate asks the host whether news of a living member may be believed.
type aliveDelegate struct {
	self    string
	admit   func(Member) error
	members *table
}

var _ memberlist.AliveDelegate = (*aliveDelegate)(nil)

func (d *aliveDelegate) NotifyAlive(n *memberlist.Node) error {
	if n.Name == d.self {
		return nil
	}
	m := copyOf(n)
	if string(m.Meta) == leaveMark { // the host has seen its meta, or must not see it any more
		known, ok := d.members.get(n.Name)
		if !ok {
			return errors.New("unknown here, and about to leave")
		}
		m.Meta = known.Meta
	}
	if d.admit == nil {
		return nil
	}
	return d.admit(m)
}
