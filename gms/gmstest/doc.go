// Package gmstest runs whole groups in one test, in virtual time and in memory: for this module's own tests of its
// promises, and for a host app's tests of its recovery.
//
// A World is some nodes, each a real gms.Group over the real gossip, Raft and RPC, on a network and on disks of memory.
// Nodes can be killed, paused, stopped and restarted, and links cut, delayed and made lossy, each at an exact moment. All of
// it lives in a testing/synctest bubble, where an hour passes in seconds and nothing depends on how fast the machine is:
//
//	func TestMyRecovery(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			app := newApp() // the code under test
//			w := gmstest.Cluster(t, 3, gmstest.WithApp(func(n *gmstest.Node) (stop func(), err error) {
//				if err := n.Router.AddRecoveryFactory("payments", signals.HandleRecovery(app.recover)); err != nil {
//					return nil, err
//				}
//				m, err := recovery.ForGroup(n.Group, recovery.Options{})
//				if err != nil {
//					return nil, err
//				}
//				return m.Stop, m.Start(context.Background())
//			}))
//			claim, err := w.Node("n2").Group.Claim(t.Context(), "payments", "17", 1)
//			...
//			w.Kill("n2")
//			w.AwaitRecovered("payments", "n2")
//			... // what the app has made of it
//		})
//	}
//
// A host app that waits for real sockets, disks or databases cannot live in a bubble: there each node is a gms.Group of its
// own, from gms.DefaultConfig, and Killable gives it a network that can die.
//
// # What holds
//
//   - The test's own goroutine is the only one that lets time pass: Advance, Await and its kin. Everything else happens in
//     no time. No real socket and no blocking file is used; homes are small files, in memory where the system has that.
//   - Kill is kill -9 for the others and for the disk. The goroutines of the killed process are taken down meanwhile:
//     its contexts end, its handlers may be called for a moment more; see Node.Alive.
//   - While a world lives, every entry that any member applies is judged at once: all replicas have the same state at the
//     same index and go forward only; no two are appointed to one recovery, no appointee is closed, unable or tried; no
//     orphan is without a recovery; a node is fenced as long as one of its recoveries is open; no living run is closed as
//     refused, nor as lapsed while it held its lease or its link to the leader was whole. A breach fails the test.
//   - Whatever is random comes from one seed, printed with the test, and given by FENCEPOST_SEED. FENCEPOST_TEST_LOG=1
//     prints the nodes' whole log while it is written; the last of it is printed when a test has failed.
//
// # What does not
//
//   - Goroutines that are ready at the same moment run in any order, so a seed repeats a history, not each step of it.
//   - A paused node's goroutines and clocks go on, cut off. What a real stopped process would do when it wakes, believing
//     that no time has passed, needs a real process.
//   - Restart waits, in virtual time, until the process before has let go of its home; that is some tenths of a
//     second.
package gmstest
