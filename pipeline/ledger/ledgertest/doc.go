// Package ledgertest holds what every ledger is tested with: Run, the conformance suite of the contract in package
// ledger, and Rule, its cases of one rule of PROTOCOL.md, for a test that is named after the rule. A ledger's own tests bring the group that it lives in: something whose runs, claims and fences a test controls
// (for the embedded ledger that is embeddedtest.Store).
//
//	func TestConformance(t *testing.T) {
//		ledgertest.Run(t, func(t *testing.T) (ledger.Ledger, ledgertest.Group) {
//			store := embeddedtest.NewStore()
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
// Tokens of a Group come from one counter that only grows, as in the real one.
package ledgertest
