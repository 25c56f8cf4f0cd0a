// # The machine of a node was lost, and a new one has its name
//
// You see: the new node does not start: "known with another home".
//
// It means: a node is known by its home, not by its name. The group refuses a stranger who says that it is n3, since a voter who
// has forgotten what it voted could let a token be given twice. Nothing is wrong.
//
// Do this: say on a node that works that n3 comes with a new home, once. Then start it:
//
//	n1$ fencepost node replace n3
//	n3 may come back with another home
//	n3$ systemctl start fencepostd
//	n3$ fencepost status --wait
//	… n3 …
//	n1$ fencepost members
//	… n3 …
//
// Afterwards: it votes when it has caught up, by itself. Make a new kit (fencepost kit make): the new home signs with another key.
//
// Do not: copy the home of another node to it, or a backup of its own home.
package runbook
