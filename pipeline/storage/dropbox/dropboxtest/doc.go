// Package dropboxtest is an emulator of the part of Dropbox that a storage needs, for tests and for trying out.
//
//	box, err := dropboxtest.New(dropboxtest.Options{Dir: t.TempDir(), PageSize: 1})
//	server := httptest.NewServer(box)
//	box.Inject(dropboxtest.RateLimit(15*time.Second).On("files/upload_session/append_v2").Nth(3))
//	...
//	t.Log(box) // the faults and how often each has struck
//
// It speaks the real routes (POST /2/files/..., /2/users/get_space_usage, /oauth2/authorize and /oauth2/token) with the
// real bodies of answers and errors: upload sessions whose offset must be right and that expire, commits with add, update
// and strict_conflict, names of which the case does not count, listings in pages and in no order, with what has changed
// meanwhile at their end, downloads of a range and of one revision, content hashes that are checked, a quota, access
// tokens that expire, and refusal of a Dropbox-API-Arg that is not ASCII. Hosts do not count: one server is all of them.
//
// A [Fault] says which request it hits, where in it, and what happens; it prints itself, and several may be combined.
// What holds: a fault counts the requests of its route in the order in which they come. Contents are kept in files of
// Options.Dir, everything else in memory; nothing is there any more when the process has ended. Nothing here sleeps.
package dropboxtest
