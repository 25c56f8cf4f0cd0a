// Package api is the contract between a daemon and those who look at it or ask it for
// something: the types that travel as JSON, the paths, and a client.
//
//	c := api.NewClient("/run/fencepost/fencepost.sock")
//	task, err := c.CreateBackup(ctx, api.CreateBackup{Database: "shop"})
//	task, err = c.WaitTask(ctx, task.ID, func(t api.Task) { fmt.Println(t.State) })
//
// What holds for all of it:
//
//   - Paths begin with /api/v1. A field may be added within a version, never renamed; a reader
//     ignores fields that it does not know.
//   - Times are RFC 3339 in UTC, sizes are bytes, durations are milliseconds with _ms in
//     the name. Tokens, positions and versions are numbers below 2^53, so that every JSON
//     reader keeps them whole. Lists are never null.
//   - No type has a field for a secret.
//   - An error is a problem (RFC 9457: type, title, status, detail) with a code and a hint
//     beside that, and a status that fits the code; the client returns it as *Error.
//     Code.Exit is the exit code of a command.
//   - A list that was cut at ?limit= has a header Link with the path of its next page
//     (rel="next"); ?after= names the last thing of the page before.
//   - What makes something takes a header Idempotency-Key: a repeat with the same key and
//     the same body is answered as the first was, and nothing is made twice.
//   - PathChanges streams what has changed, as server-sent events: see Change.
//   - Every GET answers with an ETag, and can be waited for: with If-None-Match and
//     ?wait=20s the answer comes when it would differ, or is 304 after that time. So
//     watching costs one open request, not a poll a second.
//
// Asking for a backup, a restore or a cancel is answered as soon as the request is safely
// written down (a planned task), not when it is done; any node may then carry it out.
package api
