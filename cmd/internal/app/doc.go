// Package app is one node as a value: the composition root of the daemon.
//
// It is the only place where the two halves of the project meet. The group (gms, signals, recovery) knows who is here and
// who recovers whom; the pipeline moves bytes and knows nothing of clusters. They are joined by a few small adapters:
//
//   - work.go: what a node does once it stands, put together from what its file and the group's settings name (outfit.go);
//   - ledger.go: which ledger it is; one in a database is told by the group what stands and what it must hold;
//   - bridge.go: package components joins locks, claims and leases of the group to all components; here a
//     FailureRecoverySignal becomes Recover and Resume of the dead node's tasks, under the fence;
//   - components.go: all work is done by autonomous components: one for each type of task, schedule, prune and discover,
//     which plan tasks, and those that the configuration adds; items of a dead run are freed under its fence;
//   - clock.go: the group's time, by which everything is decided that is due, expires or is kept;
//   - storages.go: a storage belongs to the group that added it; numbers.go: it remembers the highest number given out, and
//     nothing is begun while it has seen a higher one than the group knows;
//   - statekeeping.go: the group's own state is stored in each of them; staterestore.go: a new group takes that over;
//   - done.go: which restores and deletes were completed, the group remembers apart from the ledger.
//
// builtin.go links the implementations of sources, processors and storages; backend.go and translate.go show it all to the
// admin handler; stop.go is the way down. The life of an App is New, Start, wait for Done, Stop:
//
//	a, err := app.New(cfg, version, log)
//	err = a.Start(ctx)      // ports, home, admin socket; joining goes on behind
//	select { case <-signal: case <-a.Done(): err = a.Err() }
//	err = a.Stop(ctx)       // reverts or finishes tasks, leaves the group, closes
//
// Whatever came up goes down by a stack of named steps in the reverse order, also when Start fails half-way.
package app
