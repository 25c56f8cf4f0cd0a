// # The homes of the group were put back to an older copy
//
// You see: "a storage is ahead of the group", or "the ledger has seen token …", in fencepost status and its alarms; nothing begins.
//
// It means: the storages have seen higher numbers than the group remembers to have given out. Either its homes are of last night, or
// another group writes to the same storages.
//
// Do this: be sure that no other group works there. Look into the status, then have the numbers go on above all that was seen:
//
//	n1$ fencepost status
//	… ahead of the group…
//	n1$ fencepost group rebase --why "the homes were put back to last night"
//	numbers go on above …
//	n1$ fencepost status --wait
//	… n1 …
//
// Afterwards: fencepost storage check of each storage lists backups that the group has forgotten; fencepost catalog rebuild takes
// them up. Settings of after the copy are to be made again (fencepost apply).
//
// Do not: do it twice, or to make an alarm go away that you cannot explain.
package runbook
