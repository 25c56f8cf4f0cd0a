// # The disk of a storage is full
//
// You see: a task has failed with "disk full", or a copy is missing for that reason; fencepost usage shows when it was to be full.
//
// It means: what did not fit was tried again (backup.max_attempts), is not there, and nothing half is left in its place. With
// require: any, backups are good in the other storages. What was stored before is untouched.
//
// Do this: see what lies where:
//
//	n1$ fencepost usage
//	… near …
//
// Give it more room, or have retention keep less (the settings; fencepost prune shop shows what would go, and why). Then have the
// copy that it missed made:
//
//	n1$ lvextend -r -L +100G /dev/data/near
//	n1$ fencepost backup replicate $BACKUP --wait
//	…
//	n1$ fencepost storage check near
//	… all is as it should be …
//
// Afterwards: failed backups are made again at their next time, or now: fencepost schedule run.
//
// Do not: remove files there by hand. The list of backups does not learn of it before one is wanted.
package runbook
