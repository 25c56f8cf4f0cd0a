// Package source holds the contract of what can be backed up: a database that can be dumped, and into whose server a
// dump can be restored. Implementations live below it; this package imports none of them.
//
// A dump, in order:
//
//	d, err := src.Dump(ctx, attempt)    // checks, fixes the moment of the snapshot
//	defer d.Close()
//	for _, part := range d.Parts() {
//		err := d.Write(ctx, part, w(part)) // streams; nil only when the part is whole
//	}
//	info := d.Info()                    // goes into the manifest
//
// A restore, in order:
//
//	outcome, err := src.Settle(ctx, attempt, recorded) // what earlier attempts of the task left
//	r, err := src.Restore(ctx, attempt, options)       // makes a new, empty database
//	defer r.Abort()                                    // does nothing after Commit
//	err = r.Read(ctx, source.PartData, data)           // fills it
//	err = r.Read(ctx, source.PartDatabase, script)     // gives it owner, rights and settings
//	prepared, err := r.Check(ctx)                      // then write prepared to the ledger, under the token
//	err = r.Commit(ctx)                                // swaps it in
//
// What holds for every implementation:
//
//   - Nil means whole. A producer that failed, was killed, left something out or was cut never yields nil.
//   - Nothing of a restore is visible under the target's name before Commit, and Commit is one step: two renames, or with
//     RestoreOptions.InPlace the COMMIT of the one transaction in which everything was done.
//   - An attempt can be found from outside by its task and token, and ended: Settle of a larger token makes sure that no
//     earlier attempt of the task has an effect or can still have one. What an attempt recorded before its Commit
//     tells whether that Commit happened.
//   - No temporary files, bounded memory, no child process after a call returned, no secret in an error.
//   - An error that a person can act on has a method Hint() string with one sentence of advice.
package source
