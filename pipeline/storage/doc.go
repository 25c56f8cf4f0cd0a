// Package storage is the contract of the places where backups are kept, with what all of them share: names, the owner
// object, and wrappers.
//
// A [Storage] keeps named objects: put (all or nothing, if absent or instead of one version), get, stat, list, delete.
// Implementations live in packages below this one, pass storagetest.Run, and classify their errors; whatever stands on
// top only obeys the classes. A stack is made in one visible place, the guard outermost:
//
//	disk, err := local.Open(local.Options{Root: "/srv/backups"})
//	var s storage.Storage = disk
//	s = storage.Log(s, "disk", logger)
//	s = storage.Limit(s, storage.NewLimiter(20<<20), nil)   // 20 MiB/s up, down unlimited
//	s = storage.Retry(s, storage.RetryOptions{})
//	owner, err := storage.Adopt(ctx, s, storage.Adoption{Cluster: id, High: mark}) // once, when it is added
//	guarded := storage.OwnedAs(s, id, owner.Storage)        // always
//
// What a wrapper hides can be found again with [As].
//
// # Whose storage is it
//
// An empty folder where a disk should be mounted looks like a storage without backups, and another group's bucket like
// one full of orphans. So a storage that was added holds the object _fencepost/owner.json, and [CheckOwner] answers
// [ErrNoOwner] when it is absent and [ErrForeign] when it names another cluster, and [OwnedAs]
// ErrOther when it is not the very one. [Owned] asks before its first call and
// lets nothing through without an answer; it asks again before it believes an empty listing. The object also keeps the
// highest number (token or position) that the group has given out, so that a group made anew starts above it:
// [RaiseHigh] raises it by compare-and-set and it never goes down, a takeover by another cluster included.
//
// # Invariants
//
//   - A name is what [ValidName] accepts, in every storage, whatever its own system would allow. Names whose first
//     element begins with "_fencepost" belong to this package: only the owner object and what lies in [GroupFolder] can
//     be reached, and no listing shows any of them but that of GroupFolder itself. An owner that is not the group's own
//     keeps it from that folder as from everything else.
//   - A name is an object or a folder of others, never both (a file system cannot do more).
//   - A listing is whole or ends with an error. Whatever is not there is [ErrNotFound] only when the storage itself is
//     known to be there.
//   - No wrapper turns an error of one class into another, and none repeats what the class says cannot help.
//   - A Put is repeated only from the very first byte: before its reader was touched, or through [Rewinder]. An object
//     can exist after a Put that was answered with an error (the answer was lost); a caller that needs to know compares
//     what is there, as it does after ErrExists.
package storage
