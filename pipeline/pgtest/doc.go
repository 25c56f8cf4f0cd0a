// Package pgtest runs a private PostgreSQL server for tests and for the demo, fills databases with sample data, and
// takes fingerprints of databases that can be compared.
//
// A test binary shares one server; each test gets databases of its own:
//
//	var pg pgtest.Shared
//
//	func TestMain(m *testing.M) { os.Exit(pg.Around(m).Run()) }
//
//	func TestDump(t *testing.T) {
//		dsn := pg.Server(t).Database(t) // dropped at the end of the test
//		err := pgtest.Sample(t.Context(), dsn, 1<<20)
//		...
//	}
//
// Around fits goleak as well: goleak.VerifyTestMain(pg.Around(m)). A test that must stop or break its server makes one
// with New; a program uses Start and Stop.
//
// What it promises:
//
//   - The server is made by the PostgreSQL programs that are installed (the newest of /usr/lib/postgresql/*/bin and its
//     like, then PATH). When there are none, ErrNoServer says what to install.
//   - It is private: a directory of its own, a free port on 127.0.0.1, no unix socket, and a superuser with a
//     password, so that tests meet real authentication (SCRAM). Nothing of an installed cluster is touched or needed.
//   - It never runs as root: started by root it runs as the user "postgres" or "nobody", or one made by useradd, and
//     its directory belongs to that user, who must be able to reach it.
//   - Stop leaves nothing behind: no process, no shared memory, no file. The same holds when the process that called
//     Start is killed: a small shell keeps the server; it holds one end of a pipe, notices when the other end is gone,
//     ends the server and removes the directory. (On systems without a shell only Stop cleans up.)
//   - By default the server does not sync to disk, which makes it fast and useless for keeping data.
//
// Sample and Fingerprint speak SQL to any server by a DSN. Both work inside the server: 200 MB take seconds and no
// memory here. Two fingerprints are equal when tables hold the same rows in any order and everything else that a dump
// carries is the same; Diff says in sentences where they are not.
package pgtest
