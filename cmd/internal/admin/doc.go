// Package admin answers the admin API of package api: an http.Handler over a few small
// interfaces, and a server that puts it on a unix socket.
//
//	h := admin.NewHandler(admin.Backend{Members: g, Recoveries: g, Operator: g, Tasks: b, Backups: b, Requests: b, Keeping: b, Storages: b, Watch: watch, Translate: translate})
//	s := admin.NewServer(socket, h, logger)
//	err := s.Start()
//	...
//	s.Stop(ctx)
//
// The interfaces are declared here and return types of package api, so this package knows
// neither the group nor the pipeline: the composition root makes the adapters.
//
// What it promises:
//
//   - Every error leaves through one function, as {code, message, hint}; Translate is the
//     one place where sentinels of other packages become codes.
//   - A request body may not hold a field that this version does not know: a wish that
//     would be ignored is refused (code usage).
//   - Every GET has an ETag. With ?wait= and If-None-Match it is answered when the answer
//     differs: Watch only says "look again", and is helped by a slow look of our own.
//   - The socket has mode 0600. A socket file that is left over is removed only when
//     nobody answers at it; one at which somebody answers, and a file that is no socket,
//     are errors, and stay as they are.
//   - Stop ends what is being waited for at once and lets the other requests end, until
//     its context ends. It may come first and may come twice.
package admin
