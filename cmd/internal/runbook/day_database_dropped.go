// # A database was dropped, or spoilt, by mistake
//
// You see: somebody tells you.
//
// It means: the newest good backup is as old as fencepost backup list says. What was written since is lost with it.
//
// Do this: keep people out of it. If it is there, but spoilt, restore beside it first, and look:
//
//	n1$ fencepost backup list shop
//	… completed …
//	n1$ fencepost restore shop --as shop_copy --yes shop_copy --wait
//	… completed …
//
// Then restore it itself. If it is there, it is replaced in one moment, and kept for a day:
//
//	n1$ fencepost restore shop --yes shop --wait
//	… completed …
//
// Afterwards: the last lines say how to get the replaced one back (fencepost undo). Drop shop_copy.
//
// Do not: restore with --in-place, unless you know why: that has no undo.
package runbook
