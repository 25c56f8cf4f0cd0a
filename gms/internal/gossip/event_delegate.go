package gossip

import "github.com/hashicorp/memberlist"

// eventDelegate copies and enqueues, nothing else: the library calls it with its lock held.
type eventDelegate struct {
	members *table
	events  *queue
}

var _ memberlist.EventDelegate = (*eventDelegate)(nil)

func (d *eventDelegate) NotifyJoin(n *memberlist.Node) { d.living(Alive, n) }

func (d *eventDelegate) NotifyUpdate(n *memberlist.Node) { d.living(Updated, n) }

func (d *eventDelegate) living(k Kind, n *memberlist.Node) {
	m := copyOf(n)
	if d.members.set(m) {
		d.events.put(Event{Kind: k, Member: m.clone()})
	}
}

// NotifyLeave tells nothing by the node's State: the library leaves that field as it was.
func (d *eventDelegate) NotifyLeave(n *memberlist.Node) {
	last, leaving := d.members.drop(n.Name)
	kind := Dead
	if leaving {
		kind = Left
	}
	d.events.put(Event{Kind: kind, Member: last})
}
