// # A node is gone for good, and nobody takes its place
//
// You see: the alarm "voters", or fencepost status names a node that is not here. You know that its machine does not come back.
//
// It means: the others have closed its run and recovered its work within seconds. Nothing is lost but copies in storages that only
// it had. The group has one vote less than it shall have: a further loss may stop it. If the machine is to be replaced under the
// same name, this is not the page: see machine-replaced.
//
// Do this, on any node that is here; it waits until the node is forgotten:
//
//	n1$ fencepost node remove n3 --yes
//	n3 is removed; its home is refused from now on
//	n1$ fencepost members
//	… n1 …
//
// Afterwards: fencepost status must name nothing that is missing. With two nodes left, add one (fencepost node add), or make one a
// witness: of two, none may be lost.
//
// Do not: start the old machine again later, should it be found. It is refused; fencepostd home reset makes a newcomer of it.
package runbook
