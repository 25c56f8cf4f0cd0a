package gossip

import "github.com/hashicorp/memberlist"

// aliveDelegate asks the host whether news of a living member may be believed.
type aliveDelegate struct {
	self  string
	admit func(Member) error
}

var _ memberlist.AliveDelegate = (*aliveDelegate)(nil)

func (d *aliveDelegate) NotifyAlive(n *memberlist.Node) error {
	if d.admit == nil || n.Name == d.self {
		return nil
	}
	return d.admit(copyOf(n))
}
