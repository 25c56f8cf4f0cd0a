// Package postgres is the ledger in a PostgreSQL database, shared by all nodes of a group: for histories without a bound,
// and for those who want to ask them in SQL.
//
//	led, err := postgres.Open(ctx, postgres.Config{DSN: dsn, Cluster: group, Check: check})
//	defer led.Close()
//	err = led.Plan(ctx, ledger.Task{ID: "06f…", Type: ledger.Create, MaxAttempts: 3, Database: "shop"})
//
// # What it promises
//
// It is a ledger.Ledger and passes ledgertest.Run. Unlike the embedded ledger it does not live in the group's log, so it
// learns of a death only by ShutOut; from the commit of a ShutOut on no write of the dead run, and none under an earlier
// token of the same fence, takes effect:
//
//   - Each run has a guard row, made before its first write, each fence one with the highest token that shut out.
//   - Each guarded transaction takes the shared advisory lock of its run (and of its fence), then reads the guard rows,
//     then changes the row WHERE id and token; no row is ledger.ErrFenced. Reading without the lock would leak: the
//     shut-out could commit between the reading and the writing. Locking the guard row FOR SHARE would starve: living
//     writers can keep it locked for ever, in turn. Advisory locks are given in the order in which they were asked for.
//   - ShutOut takes these locks exclusively and sets the guard rows. A process that was stopped inside a transaction would
//     hold it up for ever; so each such session says in its application_name whose it is, and ShutOut ends those that it
//     shuts out, again and again until it has the locks.
//   - A COMMIT whose answer is lost is settled by reading the row again, once its lock is free: each write leaves an id of
//     its own in the row and in the history of its states. Only what cannot be settled is ledger.ErrUnavailable.
//   - Times are the server's. No decision depends on a node's clock.
//   - Nothing is ever removed: guard rows must last as long as a zombie can, and history is what this ledger is for.
//
// # Whose ledger
//
// One lineage row says which ledger it is, which group's, and its mark: the highest token whose result it holds, or that shut
// somebody out. Another group's is ErrForeign. One whose mark is below what the group or this process has seen is an older
// copy (a restored dump, a standby that was promoted without the last commits): it is frozen, for every node, until a person
// has compared it with the storages and calls Amend. A server put back in time breaks all sessions first; each new one looks, and asks the
// group for what other nodes have seen. The group knows which ledger it uses (Config.Uses): a database with another one, or
// with none, is refused there, and left as it is.
//
// A Repair looks at a ledger whatever its lineage says, and carries out what a person has decided (OpenRepair, Amend, Found).
//
// # What the server must be
//
// PostgreSQL 13 or later, not a standby, reached directly. All nodes use one role, which owns the schema fencepost_ledger
// or may make it, and so may end the sessions of its fellows. A connection pooler is refused, because in transaction mode
// sessions are shared, and advisory locks and ended sessions would hit others. It is noticed by the process id that the
// other end announces for a new connection: a pooler, which does not know yet who will serve, makes one up; a server
// tells the one that pg_backend_pid confirms. Poolers in session mode are refused with it: there is one in here.
//
// Each session sets its own time-outs (session.go), whatever the role's settings are, and synchronous_commit is never
// weaker than on.
//
// Tables are made and brought up to date by Open, under a session lock, from the embedded files in migrations/. A file that
// was released never changes; a ledger of any released version can be opened, one of a newer version is refused. During a
// rolling upgrade programs of two versions share the tables: what only the newer one understands is made by Upgrade, when the
// group has agreed on the newer protocol.
package postgres
