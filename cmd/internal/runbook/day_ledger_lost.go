// # The ledger's database is gone, and there is no copy of it
//
// You see: the nodes wait for the ledger; the database is not there, or is an empty one.
//
// It means: the list of backups and tasks is gone. The backups are not: each storage holds what is needed to list and restore them.
//
// Do this: make an empty database where ledger.dsn points to, or name a new one there in the files of all nodes. Then begin a ledger
// in it, with what the storages hold:
//
//	n1$ fencepost ledger init --apply
//	Done: the ledger is open.
//	n1$ fencepost status --wait
//	… n1 …
//	n1$ fencepost backup list
//	… completed …
//
// Afterwards: start the other nodes again, one after the other. The history of tasks, pins and notes are lost; pin again what must
// never be deleted. Back the ledger's database up.
//
// Do not: begin anew when a copy of last night exists: put that back, and see ledger-old.
package runbook
