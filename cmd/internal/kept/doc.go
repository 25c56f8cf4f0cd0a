// Package kept is where the daemon keeps what belongs to the whole group and to no backup: accounts, the audit trail,
// answers that may be asked for again.
//
//	r, err := store.Get(ctx, "user/ann")
//	changed := ...                                                 // of r.Value, which is JSON
//	err = store.Commit(ctx, kept.Put(r.Key, changed, r.Version))   // ErrConflict: somebody was faster, begin again
//
// A Store is a map from keys to records with versions. The daemon's is the group's state cache; Memory is one for tests and
// for a node that is tried out alone. What both promise:
//
//   - Get and List see all that was committed before the call, on whatever node; Local may lag, and never blocks.
//   - A Commit changes all of its records or none, and only while each has the version that was said: 0 means that there is
//     no record of that key. ErrConflict says that one has another; nothing was changed then.
//   - A record is at most 64 KiB.
//   - Nodes of two versions work together while they are upgraded, and each reads what the other writes: a field that a later
//     version adds carries a tag with the protocol that it came with, `protocol:"2"`, and a record in which it is set is refused,
//     ErrProtocol, until the group writes that protocol (see Needs, and gms.Group.FinalizeUpgrade). Who can do without it leaves
//     it away until then.
//
// Update is the usual way to change one record: it reads, lets the caller decide, and begins again after a conflict,
// a little later each time.
package kept
