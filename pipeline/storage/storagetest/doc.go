// Package storagetest holds what every storage has to pass, and faults to try what stands on top of storages.
//
// The conformance suite goes through the contract of package storage sentence by sentence. An implementation calls it
// from a test, with a function that makes an empty storage of its own for each part:
//
//	func TestConformance(t *testing.T) {
//		storagetest.Run(t, func(t *testing.T) storage.Storage { return mem.New() }, storagetest.InMemory)
//	}
//
// A fault says which call it hits, where in it, and what happens; it prints itself, and several may be combined. The
// storage below a fault does the real work, so a fault never shows behaviour that a real storage could not have:
//
//	gate := storagetest.NewGate()
//	s := storagetest.Inject(mem.New(),
//		storagetest.Fail(storagetest.Put, errBoom).On("manifest").Nth(2), // second put of a manifest fails
//		storagetest.Break(storagetest.Put, 1<<20, errBoom),               // every put fails after 1 MiB
//		storagetest.Cut(100),                                             // every get ends, as if whole, after 100 bytes
//		storagetest.Stall(storagetest.Stat, gate))                        // every stat waits for gate.Release
//	t.Log(s) // prints the faults and how often each has struck
//
// What holds: a fault counts only the calls that match it, in the order in which they begin, and that order is a test's
// own when it makes one call at a time. Start faults strike before the storage is asked, so nothing has happened;
// lost-answer faults strike after it has done its work; stream faults strike when exactly the named number of bytes has
// passed. A fault that waits does so no longer than the call's context. Nothing here sleeps.
package storagetest
