// # A node does not start, because its home is a copy, or older than the group remembers
//
// You see: the node ends with "another copy of this home", or "its log is shorter than what the group has seen", or "the group has
// given this home up". The last lines of its log say which:
//
//	n3$ journalctl -u fencepostd -n 3
//	… home …
//
// It means: the directory was copied to a second machine, or put back from a backup or a snapshot, or was given up by node replace or
// recover. A node with such a memory could vote twice. What the group holds is with the others; the home has nothing that they lack.
//
// Do this: empty the home (what was there is kept beside it), and let it come as a newcomer:
//
//	n3$ fencepostd home reset --config /etc/fencepost/node.yaml
//	… is empty: …
//	n1$ fencepost node replace n3
//	n3 may come back with another home
//	n3$ systemctl start fencepostd
//	n3$ fencepost status --wait
//	… n3 …
//
// Afterwards: remove what reset has kept, when nobody misses it. If the home was copied to a second machine on purpose, give that
// one a name of its own (fencepost node add) before it is started.
//
// Do not: do this on all nodes at once. As long as a majority of homes is whole, only the ill one is reset. If none is, see
// group-rolled-back, homes-lost or group-lost.
package runbook
