// Package groupstate is what a group keeps of itself in its storages, so that it can be made anew when every node is lost:
// settings, users and tokens, what is pinned, which schedules are disabled, which components are paused, and the ids and keys
// by which the backups there are known for its own.
//
//	text, err := groupstate.Seal(head, state, chain, sign)              // on the node that holds the lock
//	_, err = store.Put(ctx, groupstate.Name(token), storage.Bytes(text), storage.Condition{})
//	err = groupstate.Prune(ctx, store, now)
//	...
//	list, err := groupstate.List(ctx, store)                            // newest first, when all else is gone
//	sealed, err := groupstate.Read(ctx, store, list[0].Name)
//	state, err := sealed.Open(registry)
//
// What holds:
//
//   - An object is named after the token under which it was made, is put only if absent and is never changed: what a writer
//     makes that was held up is older by its name than what others made since, whenever it arrives.
//   - Its first line says what it is, in plain JSON; the second is the node's signature of the first; the rest is the state, as
//     the processors of backups made it of it. So a kit that opens backups opens it, and what holds a secret (users and
//     tokens) is in it only where something encrypts.
//   - What is cut, changed, of a later format, renamed or copied from another storage is an error that says so in one line,
//     and never half a state. Whose signature it is, the caller judges by the keys that it knows.
//   - The newest Keep objects stay. What a storage locks, or does not let anybody remove, stays longer.
//
// What of a state a group takes that has settings already, Compare tells; nothing here changes anything but the storage.
package groupstate
