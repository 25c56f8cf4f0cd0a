// Package pipeline makes and restores backups as tasks that survive the death of the node that runs them. It moves bytes
// from a source through processors into storages and knows nothing of clusters: what it needs of a group reaches it
// through the small interfaces of package component (locks, claims with tokens, does this node's run stand), and a ledger.
//
//	p, err := pipeline.NewPlanner(pipeline.PlannerConfig{Ledger: led, Catalog: catalog, Require: "all", MaxAttempts: 3})
//	task, err := p.PlanBackup(ctx, pipeline.BackupRequest{Database: "shop"})
//
//	w, err := pipeline.NewWorker(pipeline.Config{Ledger: led, Locks: group, Claims: group, Gate: group, Catalog: catalog})
//	err = w.Start(ctx) // one autonomous component per task type claims planned tasks, until Stop
//
//	// in a recovery action, under a fence, for each orphaned claim that was adopted:
//	verdict, err := w.Recover(ctx, guard, node)
//	if verdict == pipeline.Rerun { /* release the fence, then */ err = w.Resume(ctx, claim) }
//
// # Create
//
// source → count and hash → processors → count and hash → all chosen storages at once, in one pass. Memory is a fixed
// number of blocks whatever the size and for each stream of rows (DumpOptions.Jobs), which are an object each and go at
// the same time; nothing goes through a temporary file. Objects are <backup>/<token>/<part>, and
// <backup>/<token>/manifest.json is the commit of a storage: made last, only if absent. A producer that fails leaves
// nothing stored. A storage that fails, or takes nothing for Config.StallAfter, is left behind as long as the others
// satisfy `require`; one that they cannot do without has ten times as long; a slow one slows the whole, because nothing
// may pile up. Whatever is left behind is a copy that the ledger calls missing, with the reason.
//
// # Restore
//
// The valid manifest with the highest token → download → stored hash → inverse processors → raw hash → the source's new
// database. A hash or length that does not fit is a read error before the end of input. Then Check, the guarded ledger
// write of what will be swapped in, Commit, and completed. From Commit on a cancel comes too late.
//
// # Whose manifests are believed
//
// Each manifest is signed with the key of the node that makes it (sign.go), which the group knows by its record of keys
// and a machine without a group by a list that each home keeps. What is unsigned, or signed by somebody else, is no
// backup: restores pass over it, and are refused with ErrForeign when there is nothing else, unless a person accepts it.
// What was changed after it was signed cannot be read at all.
//
// # Why a dead owner does no harm
//
//   - Every attempt has a token of its own, and with it a path, before its first byte (PROTOCOL.md 27).
//   - The state uploading is written, guarded, before the first byte goes to a storage. So an attempt that died while
//     creating stored nothing, and one that was shut out before uploading never starts to.
//   - A recoverer creates the dead attempt's manifest itself, void: a late owner meets it and stops. Where the real one
//     is there already in enough storages, the attempt was complete and is adopted.
//   - An owner that gives up falls back to creating, guarded, before it removes anything: from then on nobody adopts it.
//   - Every ledger write carries the claim's token; ErrFenced ends the attempt's one context, and a fenced owner writes
//     nothing more and removes only what a tombstone has already made void.
//
// What became of an attempt is decided by one pure function, Next; Recover carries it out.
//
// # Cancel, stop, failure
//
// A task has one context; its cause says why it ended. A cancel is a request in the ledger that the owner's watcher sees
// (a hint plus a poll). Stop claims nothing more, waits StopGrace, then reverts what still runs here, plans it again
// without counting the attempt and gives the claim back: a planned stop costs a task nothing but time. What cannot be
// reverted in time stays claimed, and recovery finds it. A failure that may pass (source, storage away) is planned
// again and counts as an attempt; any other ends the task with one sentence that says why.
//
// Sweep removes from the storages, again and again, what late owners left under tokens that cannot count any more.
//
// # Verify
//
// Verify reads every copy back and says of each present, missing, corrupt or unknown; with a scratch server it also
// restores one and drops it again. It writes no ledger: a verify task writes down what it found under its claim. Corrupt
// and missing copies become such of the entry, unknown ones stay as they were; when no copy is whole, or it cannot be
// restored, the backup is suspect, but not when the scratch server cannot take it at all (ErrScratchUnfit). After a kill the
// next attempt's Settle (which Verify calls) drops what is left in the scratch server.
//
// # Delete
//
// A delete waits (PlannerConfig.DeleteDelay) and can be taken back until its entry says deleting, in a write that is checked
// where it takes effect (ledger.MayBegin): not a pinned backup, not one that is read, not the last good one, and not against
// retention when retention had planned it. Then the manifests go from all storages, then the data, then the entry is gone;
// neither a cancel nor a dead node ends that half way, and a storage that is away is waited for.
//
// # Components
//
// Each type of task is an autonomous component; two more plan tasks. Scheduler makes a task of each occurrence of a
// schedule, whose id is the occurrence's, so that it exists once whoever looks. Pruner looks at a database after each new
// backup: it plans the mending of copies (replicate tasks) and what retention lets go (delete tasks), never on the back of
// a listing that failed. Of tasks with one Flight (backups of a database; what changes one backup) at most one has begun.
package pipeline
