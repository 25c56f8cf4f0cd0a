// Package local keeps objects as files below one folder of a local (or mounted) file system.
//
//	s, err := local.Open(local.Options{Root: "/srv/backups", MinFree: 5 << 30})
//	defer s.Close()
//	info, err := s.Put(ctx, "app-20260101/17/data", r, storage.Condition{})
//
// An object's file has its name, so that a person finds it without this program. What else is in the root lies in the
// private folder _fencepost: the owner object, the folder tmp, and the file lock.
//
// # How a Put becomes visible
//
// The bytes go to a temporary file in _fencepost/tmp (same file system, mode 0600), which is synced; then it is linked
// to its name. A link is made only if nothing has that name, in one step, whoever tries at the same moment and from
// whichever process; so create-if-absent needs no lock. Then the folders are synced up to the root, and only then Put
// answers. Replacing a version takes the lock file (flock), compares, and renames; Delete takes it too, so that nothing
// comes between the comparing and the renaming. A file system without links or locks is refused with a clear error.
//
// # What a dead process leaves
//
// Every temporary file is locked by the process that writes it. The lock ends with the process, however it ends; Open
// removes the temporaries whose lock is free, and never one of a living process, this one or another.
//
// # Invariants
//
//   - Nothing outside the root is read, written or listed: all access goes through os.Root, symbolic links included. A
//     file that is no regular file is no object.
//   - The root stays what it was at Open: every call first compares it with what its path shows now, so that a file
//     system that was unmounted, or mounted over it later, is an error and not an empty storage. Open never makes the
//     root; nothing is created in it before the first Put.
//   - A version is made of file number, size and time; the time is set by Put to the nanosecond, so that two contents
//     never share one. A reader that meets another length than it was opened with fails instead of ending.
//   - Disk full and missing rights are storage.ErrPermanent; with MinFree a Put fails before others on the disk suffer.
//
// A listing reads one folder at a time and holds its names in memory; it is sorted by full name, bytewise. A folder that
// cannot be read ends it with an error. Files that no Put could have made (names that are not valid) are not shown.
package local
