// Package offline is what the fencepost command does without a daemon: init writes the
// configurations, certificates and keys of a new group; certs makes, renews and shows
// certificates; storage auth lets a person authorize a storage; env looks at the local environment of a node, which its warden keeps, and repairs it.
//
//	files, err := offline.Init(offline.InitOptions{Nodes: []string{"n1", "n2", "n3"}, Dir: "try"})
//	// then, for each: fencepostd --config try/n1.yaml
//
// What Init promises:
//
//   - All or nothing. Everything is checked before the first file is written, and a file
//     that cannot be written takes those before it away again.
//   - It overwrites nothing: if any of the files, homes or sockets is there, it refuses.
//   - What it wrote passes configs.Load and CheckSecurity: ports and sockets differ between
//     nodes of one address, which is on loopback unless addresses are given; all nodes name the
//     same bootstrap list.
//   - Files have mode 0600 and folders 0700: a connection string may hold a password.
//
// For node i of those with one address, counted from 0, the gossip port is the base port + 10·i
// and the cluster port the one after it. The home is DIR/<node>, the socket DIR/<node>.sock, the
// file DIR/<node>.yaml, the certificate and its key DIR/<node>.pem and .key; ca.pem, ca.key and
// gossip.key are the group's. Nodes need all of these but ca.key.
//
// Authorize gets a storage of kind dropbox its refresh token from a person with a browser, and writes it, with mode 0600,
// to the file that the configuration names; another token there is replaced, all at once.
//
// A storage comes into use by being written into the configuration of the nodes: the group marks it as its own
// (_fencepost/owner.json) and remembers its id when a node starts that has it. ProbeStorage tries before that whether it can
// do all that backups need, AddStorage marks it too, AdoptStorage takes one over from a group that is no more, and
// SetStorageSecret puts another secret into the file that the configuration names. All else of a storage is changed in the
// configuration.
//
// A Shelf is one storage of a configuration, listed and restored from by its manifests alone: no daemon, no group, no
// ledger. Nothing is written to it. A restore that was killed leaves the database that it was filling; the next one into the
// same target drops it. Whose manifests are believed, a list of keys says, which each node keeps in its home
// (signers.json) and which may be copied to wherever it may be needed; without one a person has to accept each.
//
// ReadGroupState reads what a group has kept of itself in a storage, for a new group to take over; TakeOverStorages makes the
// storages of the lost one that one's.
//
// A kit (MakeKit, CheckKit, UnpackKit) is all that a machine needs that has nothing but a server: keys, storages with
// their credentials, whose manifests are believed, and a page of steps; a tar archive in one age file with a passphrase.
//
// builtin.go is where all implementations of storages, sources and processors are linked; cmd/internal/app opens them by it.
//
// CheckSecurity is what fencepostd does with the files before it starts.
//
// An Env is found by the node's home. Its Status, Verify and Evidence take nothing and change
// nothing (on Linux), so that they may be asked while a warden runs; Fail is for that time
// too. Drain, Sweep and Seal do what only the keeper of an environment may: below a warden
// they answer ErrEnvBusy. None of them reaches what lies beside the environment, such as the
// node's key and log.
package offline
