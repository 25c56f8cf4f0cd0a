// # All homes are lost, and the ledger's database is not
//
// You see: the nodes, started with empty homes, form a new group, and end by themselves: their storages belong to another one.
//
// It means: what the group itself kept (its log, settings, users) is gone. What was backed up, and where, is in the ledger's database
// and in the storages. This is for groups with ledger.dsn; without it see group-lost.
//
// Do this: be sure that the old group does not run anywhere. Start the nodes with empty homes; they end. Then take over one thing
// after the other; the storages first, on a node that has them:
//
//	n1$ systemctl start fencepostd
//	n1$ journalctl -u fencepostd -n 4
//	… belongs to another cluster…
//	n1$ fencepost storage adopt near --config /etc/fencepost/node.yaml --yes
//	Storage near is the group's own; …
//	n1$ fencepost storage adopt far --config /etc/fencepost/node.yaml --yes
//	Storage far is the group's own; …
//	n1$ systemctl start fencepostd
//
// Then the nodes wait: fencepost status says that the ledger belongs to another group.
//
//	n1$ fencepost ledger adopt --apply
//	Done: the ledger is open.
//	n1$ fencepost status --wait
//	… n1 …
//	n1$ fencepost backup list shop
//	… completed …
//
// Afterwards: tasks that had begun are taken up; restores and deletes that had not are not begun. Settings and users are to be made
// again (fencepost apply). Make a new kit.
//
// Do not: adopt the storages of a group that still runs.
package runbook
