// # The ledger's database was put back to an older copy
//
// You see: the ledger is *frozen*: fencepost status says "an older copy", or that results are missing. Nothing is started, restored,
// deleted or pruned.
//
// It means: ledger.dsn leads to a copy of last night, or to a standby that took over without the last commits. The group remembers
// more than the ledger does. Were it believed, a restore or a delete of yesterday would be done once more.
//
// Do this: see what it lacks, by the storages and by what the group itself remembers; then open it again:
//
//	n1$ fencepost ledger show
//	… frozen
//	n1$ fencepost ledger reconcile
//	Nothing was changed. …
//	n1$ fencepost ledger reconcile --apply
//	Done: the ledger is open.
//	n1$ fencepost status --wait
//	… n1 …
//
// Afterwards: backups of since the copy are there again; no restore and no delete was repeated. Those of which nobody knows whether
// they were done have ended as interrupted: ask for them again if they are wanted.
//
// Do not: edit the tables, or point the nodes at yet another copy.
package runbook
