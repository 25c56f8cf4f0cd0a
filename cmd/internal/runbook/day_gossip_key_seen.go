// # A gossip key was seen by others
//
// You see: you know that gossip.key was on a machine, in a ticket, in a repository.
//
// It means: who has it, and reaches the ports, can listen to gossip and disturb it. It gives no place in the group: for that takes a
// certificate.
//
// Do this, with all nodes up:
//
//	n1$ fencepost keyring rekey
//	…
//	n1$ fencepost members
//	… n3 …
//
// Afterwards: the key of the file counts for nothing any more; nodes keep the present one in their homes. A node that was down
// meanwhile needs it: fencepost keyring list says who has what.
//
// Do not: change gossip.key in the files of nodes that run.
package runbook
