// # A whole PostgreSQL server is lost, and the group is not
//
// You see: the alarms of all databases of one server; the server does not come back. There is an empty one in its place, whose
// superuser's connection string is in new.dsn.
//
// It means: each database, and the roles of the server, are in the storages.
//
// Do this, on a node (it reads the storages by itself, and goes on when the node is stopped):
//
//	n1$ fencepost restore --server pg1 --to file:new.dsn --config /etc/fencepost/node.yaml --dry-run
//	Roles and tablespaces of backup … to be made: …
//	n1$ fencepost restore --server pg1 --to file:new.dsn --config /etc/fencepost/node.yaml --yes pg1
//	All of the plan is done: …
//	n1$ fencepost globals diff pg1 --to file:new.dsn --config /etc/fencepost/node.yaml
//	Roles and tablespaces of backup …
//
// After an interruption give the second command again. --as-of "2026-05-02 14:30" takes nothing younger. What is not restored, and
// why, is named at the end.
//
// Afterwards: the roles that the plan names as without a password get one: ALTER ROLE name PASSWORD '...'. Change the server's dsn in
// the settings, and fencepost database test pg1.shop; backups go on by themselves. The next ones are *suspect* until you accept one
// (another system id): fencepost backup accept.
//
// Do not: let two people do it to the same server at once: the later command ends the earlier one.
package runbook
