package app

import "github.com/fencepost/fencepost/gms"

// A group may have members that are no daemons: host apps, which vote and may lead, and know nothing of drains, removals and
// backups. What one member does for the whole group is the leader's while that is a daemon, and else another daemon's.

// isDaemon tells whether a member is a daemon, by what each daemon says of itself.
func isDaemon(m gms.MemberDetail) bool {
	_, says := m.Details[versionDetail]
	return says
}

// speaker is the node that acts for the group: the leader, or the first of the daemons that have a part in the log; empty
// when there is none.
func speaker(members []gms.MemberDetail) (node string) {
	for _, m := range members {
		switch {
		case !isDaemon(m):
		case m.Leader:
			return m.Node
		case !m.Fed && !m.Suspected && (node == "" || m.Node < node):
			node = m.Node
		}
	}
	return node
}

// successorAmong is the voter that shall lead in a node's place: a daemon, since nobody else hears that it is to; empty when
// there is none.
func successorAmong(members []gms.MemberDetail, of string, drained func(node string) bool) string {
	for _, m := range members {
		if m.Voter && isDaemon(m) && m.Node != of && !m.Suspected && !drained(m.Node) && len(m.Details[stoppingDetail]) == 0 {
			return m.Node
		}
	}
	return ""
}

// speaks tells whether this node acts for the group.
func (a *App) speaks() bool { return speaker(a.group.Members()) == a.cfg.Node }
