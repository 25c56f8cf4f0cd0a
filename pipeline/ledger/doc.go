// Package ledger is the contract of what the pipeline remembers: tasks (one execution each) and backups (what is kept).
//
// A ledger is shared by all nodes of a group, and by nodes that do not know yet that the group has closed their run. So
// every change that a worker makes carries a Guard, and the implementation checks it at the point where the change takes
// effect. The life of a row:
//
//	led.Plan(ctx, task)                        // anybody: state planned, token 0
//	before, err := led.Take(ctx, g, id, node)  // under a claim: the token goes up, the attempt is counted
//	led.Write(ctx, g, ledger.Change{Task: t})  // any number of times; token must still be g.Token
//	led.Write(ctx, g, ledger.Change{Task: done, Backup: &b}) // the last one: a final state, and the backup with it
//
// Invariants, which ledgertest.Run checks for each implementation:
//
//   - the token of a row and of a backup's entry never decreases;
//   - no write takes effect whose run is closed, whose claim has moved, or whose fence is held by a later recoverer;
//   - a final state is entered once and never left; a backup is completed once, and leaves that state only to be deleted;
//   - a cancel request is either seen by whoever reads the row afterwards or refused with ErrFinal, never lost.
//
// A recoverer calls ShutOut before it looks at anything. ErrUnavailable from a write means that its outcome is not
// known: read the row again; the same write may also simply be repeated.
//
// The rules of a change (AfterTake, AfterWrite, AfterBackup) are pure functions here, so that implementations differ
// in how they store rows and check guards, and in nothing else.
package ledger
