// # The disk of a node's home is full
//
// You see: the node is missing from fencepost members, or asks for nothing and answers nothing. Its log says once, as an error, "the
// disk of the home is full", from the node or from its warden.
//
// It means: the node had kept some room for this day, has given it up to end in order, and waits; killed on a full disk, it is its
// warden that waits. The others have recovered its work. Nothing that was answered is lost.
//
// Do this: make room, 32 MiB at least: more disk, or whatever else lies there goes elsewhere. The node starts by itself:
//
//	n1$ lvextend -r -L +1G /dev/data/fencepost
//	n1$ fencepost status --wait
//	… n1 …
//
// Afterwards: see what has filled it. A home takes tens of MiB, and no more with time; logs and dumps do not belong on its disk.
//
// Do not: remove anything in the home, not even what looks like a spare file. It is all that the node knows.
package runbook
