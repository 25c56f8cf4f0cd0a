// Package ledgertest holds what every ledger is tested with: Run, the conformance suite of the contract in package
// ledger, and Store, an exact replicated map in memory whose runs, claims and fences a test controls.
//
//	func TestConformance(t *testing.T) {
//		ledgertest.Run(t, func(t *testing.T) (ledger.Ledger, ledgertest.Group) {
//			store := ledgertest.NewStore()
//			led, err := embedded.New(embedded.Config{Store: store})
//			...
//			return led, store
//		})
//	}
//
// The suite plays the group itself, through the Group interface: it opens and closes runs, gives claims, lets a
// recoverer adopt them, raises fences. A ledger that learns of a death only by ShutOut passes as well as one that checks
// where it applies: the suite always shuts out before it demands that the dead stay dead.
//
// Faults of Store are switched on by the test: SetDown (nothing is reached), LoseAnswers (a commit takes effect and its
// answer is lost), BeforeCommit (a hook in which a zombie can be paused with its transaction ready). Tokens come from
// one counter that only grows, as in the group.
//
// Nothing here is meant for production: Store keeps everything in one locked map and forgets it with the process.
package ledgertest
