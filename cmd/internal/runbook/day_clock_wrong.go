// # The clock of a node is wrong
//
// You see: the alarm "clock": it names the node, and by how much.
//
// It means: leases and fences do not use that clock, and schedules and ages go by the time that most nodes, or the ledger's server,
// agree about; nobody loses work by it. As long as a clock is off nothing is pruned: prune names the node, too.
//
// Do this, on the node:
//
//	n3$ timedatectl set-ntp true
//	n3$ fencepost status --wait
//	… n3 …
//
// Afterwards: the alarm goes when the clock is right again; pruning goes on by itself.
//
// Do not: stop the node for that.
package runbook
