// Package embedded is the ledger that lives in a replicated map: the state cache of a group, or any other Store with
// versions and all-or-nothing transactions. It needs no database of its own and is the default.
//
//	led, err := embedded.New(embedded.Config{Store: store})
//	err = led.Plan(ctx, ledger.Task{ID: "06f…", Type: ledger.Create, MaxAttempts: 3, Database: "shop"})
//
// What it promises. Every guarded change is one transaction whose conditions (this run is open, it holds this claim with
// this token, this fence is held with this token, the row is of the version that was read) are checked by the Store at the
// point where the transaction is applied. So nothing written by a closed run, by a former holder of a claim or by an
// earlier recoverer can take effect, however late it arrives: promise P3 holds by construction. ShutOut therefore only
// confirms that the fence is held; from the position of that fence on, the Store refuses its predecessors.
//
// What a Store must do: Get and List are linearizable (never staler than the call); Commit is all or nothing, tells by
// *ConditionError which condition did not hold, and returns any other error only for an unknown outcome. A Store that
// repeats a lost Commit itself does so under one request id, so that it is applied once. After an unknown outcome
// (ledger.ErrUnavailable) the caller reads again.
//
// Rows are JSON with a format version, in keys task/<id>, backup/<id> and cancel/<id>, each at most MaxValue bytes. A
// row of a newer format is an error that says so. A cancel request is a key of its own, so that it never competes
// with the owner's writes for one value; it is joined when a task is read. Conflicts of versions are resolved by
// reading again, up to a bound.
//
// History is bounded: when a task is planned, finished tasks beyond Config.History are dropped, oldest first, and so are
// entries of backups that have been gone for longer than any late upload can live. Nothing else is ever dropped.
// Config.Archive keeps what is dropped. A Store that is full makes the oldest ended tasks go, archived, before their time;
// when none is left a write is ErrFull, and says so.
package embedded
