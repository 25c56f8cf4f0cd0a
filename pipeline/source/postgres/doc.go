// Package postgres dumps a PostgreSQL database and restores it, by the programs pg_dump and pg_restore, streaming.
//
//	src, err := postgres.New(postgres.Config{DSN: "postgres://backup@db1/shop", Logger: log})
//
// gives a source.Source; package source shows how a dump and a restore go.
//
// # Dump
//
// A session of ours opens a REPEATABLE READ transaction, exports its snapshot and stays until Close; pg_dump
// (-Fc -Z0, the smallest installed version that is not older than the server) dumps that snapshot. Before that it is
// checked that the role may read everything. What counts as a whole dump is decided in one place (judge): exit code 0,
// no warning but two known harmless ones, an archive's first bytes, and a writer that took every byte.
//
// PartDatabase holds what an archive leaves out: owner, connection limit, rights, settings (of the database and of
// roles in it), comment and security labels, read from the catalogs in the same snapshot, and how many objects of each
// kind the snapshot held. It is a file of SQL with the psql variable :"database" for the name, so that a person can run
// it for a database of any name; its last line is a comment with the same facts as JSON. A restore uses only that
// line: nothing has to parse SQL, a cut file lacks the line, and SQL in a backup that somebody changed is never
// run. (The output of pg_dump --create names the database everywhere and would have to be parsed.) Left out: the
// tablespace, the template flag, and by whom a right was granted (it becomes the owner).
//
// # Parts of a database, plain dumps, globals
//
// Filters (source.DumpOptions) reach pg_dump with every literal in double quotes, so that neither case nor special
// characters change their meaning; each is looked for in the snapshot first and is an error when it matches nothing.
// Large objects stay in unless they are refused by name. Rights are checked for what is dumped only, and of a partial
// dump only tables, views and large objects are counted. Schemas that pg_restore would leave out are made, bare.
//
// A plain dump is refused for a database with large objects, and must end with pg_dump's last line. Plain scripts, ours
// and others', are restored only into a new database, by a psql that \restrict (with a key of ours) keeps from every
// meta-command; one from before August 2025 cannot and is refused. SQL itself can do what the role may: restore a
// stranger's script as a role without rights to programs and files of the server.
//
// PartGlobals goes with every dump that does not refuse it (DumpOptions.NoGlobals): pg_dumpall --globals-only, read beside
// the snapshot through a session in the database itself, so that no other one has to be open to the role. It has no
// password hashes, for which any role's rights suffice, unless DumpOptions.RolePasswords asks for them. With them it is a
// secret: they can be guessed at, and logged in with where SCRAM is not used. Nothing here prints a part; whoever stores it
// encrypts it. Where the role may not read the globals after all, or pg_dumpall is missing, the dump is made without, which
// Info.Globals and the log say. A restore checks that the roles exist, and does not make them.
//
// # Several streams
//
// With DumpOptions.Jobs the rows go in that many streams of one snapshot: PartPre and PartPost hold the definitions, PartData
// and its further streams the rows, an archive each by a pg_dump of its own. The largest tables are spread over the streams by
// size; PartData holds whatever the others do not name, so that nothing can be forgotten. The session of the snapshot holds
// a reader's lock on every table from before the first stream to Close, as one that was altered in between would not be the
// same in both. A restore reads the streams at the same time, between PartPre and PartPost.
//
// RestoreChoices.Jobs also makes indexes and constraints in several sessions, which pg_restore does only from a file in which
// it can seek: the definitions are kept in a file in memory (Linux; at most 64 MiB, else one session does it). With one archive
// that is its beginning, and pg_restore runs twice. None of that is for a restore in place, which is one transaction: it
// reads one stream after the other, into an empty database only: to replace, it would have to drop what depends on the old tables
// before it reads PartPre, and that stands in PartPost.
//
// # Standbys
//
// With Config.Standby a dump looks for a standby among the servers of the DSN. Whichever way it came to one, it is refused
// when it is too far behind: one that receives and has replayed all is not, however long ago the primary wrote something. Rows of
// unlogged tables are on no standby: the tables are dumped empty, which Info and the log say, as they warn that replay may
// cancel a long dump.
//
// # Several servers
//
// Whatever changes something (a restore, its undo, what settles them) goes to the primary among the servers of the DSN, in
// whatever order they are named. A restore stays on the server where it began, and is not swapped in when a standby took
// over meanwhile: that may have got only a part. Who waits for a dump is watched, and its sessions are ended, on the
// server that is dumped.
//
// # Locks
//
// A dump holds a weak lock on every table and sequence, counted before it begins against the server's room for locks
// (max_locks_per_transaction × sessions): one that fills it hurts everybody. Who wants to alter or truncate a table waits
// for the dump; with Config.Yield that is told in the log, or ends the dump. A restore in place says for whom it waits,
// and with RestoreChoices.Disconnect ends their sessions.
//
// # Rights
//
// A dump needs CONNECT, and SELECT on all that it holds: GRANT pg_read_all_data TO role is enough for tables and
// sequences; large objects need their owner, SELECT on each or a superuser; tables with row security need BYPASSRLS or
// their owner. What lacks is named before anything is read. A restore into a new database needs CREATEDB and membership
// in the owners of what it makes (or NoOwner); in place it needs CREATE on the database and ownership of what it replaces.
//
// # Restore
//
// pg_restore fills a new database <target>__fp_<token>_<hash of the task>, made from template0 with encoding and locale
// of the backup. While the reader can still fail pg_restore's input stays open and it is killed first: it never takes a
// cut archive for a whole one. Check compares the counts of PartDatabase with the new database: these are of the
// snapshot itself, so they also notice what an archive's own list would not. Commit renames twice in one transaction
// that compares OIDs before and, under the locks of the renames, after; clients of the target are disconnected. The
// replaced database stays as <target>__was_<token> with a comment that says until when (ExpireOld). Names longer than
// 63 bytes are shortened between characters and marked with a hash of the whole.
//
// Servers of version 13 and newer can be restored to.
//
// # Restore in place
//
// With RestoreOptions.InPlace the archive goes into the target itself, in one transaction of one psql: pg_restore writes
// SQL, psql runs it as it comes. Three things keep that transaction from committing what is not whole:
//
//   - The end of the script, with its COMMIT, never reaches psql. Ours is sent by Commit, after pg_restore has ended
//     with 0, the reader has ended well, psql has run all of it and the counts were compared inside the transaction.
//   - A temporary table has a deferred foreign key to a row that does not exist. Whatever COMMIT comes from elsewhere
//     (out of the script, from a psql that takes the end of its input for the end) is refused by the server.
//   - The row comes into being only together with "done" in fencepost.attempt (task, token, done) of the target, which
//     the transaction locks first. Who takes over ends sessions until it holds the attempt's row itself, and deletes
//     it: a session that wakes or connects later cannot commit. A row that is done tells that the restore happened.
//
// The schema fencepost stays in the target and is left out of dumps (all of it, when nothing else is in it). All locks of
// the transaction must fit into the server's table, which is counted before it begins. psql runs with --no-psqlrc and
// pg_restore's own \restrict, so that nothing in a backup can be a command of psql; a pg_restore without it is refused.
//
// # Children
//
// Each child is started from an OS thread of its own that stays its parent for all of its life, so that the kernel kills
// it when this process dies (Linux; elsewhere it ends at its next use of a broken pipe). Cancelling asks (SIGTERM: the
// query on the server ends too), kills after Config.Grace, and ends what is left on the server by another session. All
// sessions have the application_name fencepost:<task>:<token>. No call returns before its child is gone, but for the psql
// of a restore in place, which lives until Commit or Abort.
//
// # Secrets
//
// Children get the password by their own environment. Errors and logs are cleaned of it by value, raw and encoded.
package postgres
