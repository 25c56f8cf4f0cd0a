// Package dropbox keeps objects in a folder of a Dropbox account.
//
//	account, err := dropbox.NewAccount(dropbox.AccountOptions{AppKey: key, RefreshToken: secret.New(token)})
//	defer account.Close()
//	box, err := dropbox.Open(dropbox.Options{Account: account, Folder: "fencepost"})
//
// The refresh token comes from a person, once: [Authorize] gives the page on which they allow the app, and the code which
// it shows is turned into a token that stays good until it is revoked. No browser has to reach a server of ours. The app
// needs the rights account_info.read, files.metadata.read, files.metadata.write, files.content.read, files.content.write.
//
// An object is an upload session: parts of 8 MiB, and a finish that makes it visible at once, "add" or "update" of one
// revision, with strict conflicts. Paths are names written so that they survive a service that ignores case (name.go).
//
// # Invariants
//
//   - Put is all or nothing. A session that is not finished is invisible, counts for nothing, and is forgotten by the
//     service within a week; so there is nothing to abort, and no Janitor.
//   - Only the finish can make an object, and it is never given up half-way: once asked for, its answer is awaited
//     (bounded by the account's Stall and the number of attempts), whatever becomes of ctx. When the answer is lost it is
//     asked for again: a session can be finished once. What is there then is ours if its content hash is and its time by
//     the client, which each Put chooses for itself.
//   - Every part carries its hash, which the service compares; the hash of the whole is compared after a Put, and at the
//     end of a Get that was read from its beginning.
//   - A part whose answer was lost is sent again, and "incorrect offset" tells whether it had come. A stream is never begun
//     anew.
//   - Memory of a Put is two parts, 16 MiB as a rule, and of small objects only what they have. A listing takes some 200
//     bytes for each object below the prefix.
//   - No call waits for ever: a connection on which no byte moves for Stall is given up, and a request that fails so is
//     made at most six times. When the service asks to wait (429) all that use the account wait as long as it says, and up
//     to thirty times; the end of ctx ends that.
//   - An access token is renewed before its end, in the middle of a Put too, and once more when the service refuses it.
//   - A version is the revision: it never comes back.
//   - A full account is noticed within each GiB, not at the end of hours.
//   - "Object or folder" (package storage) is looked up before a Put, so two Puts at once may still break it; the service
//     does not mind, since folders have names of their own.
//   - Folders stay when their last object goes: the service cannot remove one only if it is empty.
//   - The service's listings may be behind what was just written; reads of one object are not.
//
// The SDK is used for its types and routes. Its answers lose status and Retry-After, and its header is not what HTTP
// allows, so our own transport stands below it (transport.go), and repeating is ours (call.go). Secrets never show in an
// error.
package dropbox
