// # The group's authority runs out, or its key was seen by others
//
// You see: the alarm "certificate" for ca.pem; or you know that ca.key was on a machine that others had.
//
// It means: whoever has ca.key can make itself a node. It is replaced while the group runs, in three steps; between them all nodes
// need what the step before has made.
//
// Do this, where ca.key is; after each step copy what it names to every node:
//
//	ca$ fencepost certs rotate-ca begin --dir /etc/fencepost/ca
//	When all have it: fencepost certs rotate-ca sign
//	ca$ fencepost certs rotate-ca sign --dir /etc/fencepost/ca
//	When all have theirs, …
//	n1$ fencepost members
//	… n3 …
//	ca$ fencepost certs rotate-ca finish --dir /etc/fencepost/ca
//	The former authority counts for nothing where it is.
//	n1$ fencepost members
//	… n3 …
//
// Afterwards: keep ca.key off the nodes.
//
// Do not: go on to the next step while fencepost members names a problem.
package runbook
