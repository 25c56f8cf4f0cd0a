// Package embeddedtest is the group of tests of the embedded ledger: Store, an exact replicated map in memory whose runs,
// claims and fences a test controls. It is exact about conditions: a transaction takes effect whole where all of them hold,
// else not at all, as in the group's state cache.
//
//	store := embeddedtest.NewStore()
//	led, err := embedded.New(embedded.Config{Store: store})
//	store.OpenRun("aa")
//	token, err := store.Claim("backup", "task1", "aa")
//
// Faults are switched on by the test: SetDown (nothing is reached), LoseAnswers (a commit takes effect and its answer is
// lost), BeforeCommit (a hook in which a zombie can be paused with its transaction ready). Tokens come from one counter
// that only grows, as in the group.
//
// Nothing here is meant for production: Store keeps everything in one locked map and forgets it with the process.
package embeddedtest
