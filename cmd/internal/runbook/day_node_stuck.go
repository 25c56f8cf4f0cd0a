// # A node does not stop, because of a long dump
//
// You see: systemctl stop waits; fencepost status of that node says "stopping".
//
// It means: it goes on with what it had begun, for up to stop.grace, so that hours of a dump are not lost.
//
// Do this, when it cannot be waited for: a second signal. What runs is ended in order, and planned anew, elsewhere:
//
//	n3$ fencepost tasks
//	… n3 …
//	n3$ systemctl kill -s TERM fencepostd
//
// Afterwards: the task begins again, as the same attempt, on another node. Next time: fencepost node drain n3 --wait before.
//
// Do not: kill -9. It is safe, too, but the others have to recover then.
package runbook
