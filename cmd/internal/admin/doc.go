// Package admin answers the API of package api: a table of routes over a few small interfaces, what guards it, and the
// servers that put it on a unix socket and on a port.
//
//	h := admin.NewHandler(admin.Backend{Members: g, Tasks: b, ..., Accounts: who, Trail: trail, Kept: store, Watch: watch, Translate: translate})
//	s := admin.NewServer(socket, h, logger)                                   // who can open the socket may do everything
//	p := admin.NewNetServer(bind, secure, admin.Front{Handler: h, Accounts: who, Hosts: names, Logger: logger}, logger)
//	err := s.Start()
//	...
//	s.Stop(ctx)
//
// The interfaces are declared here and return types of package api, so this package knows
// neither the group nor the pipeline: the composition root makes the adapters.
//
// What it promises:
//
//   - All that is answered is in the table (routes.go and beside it): method, path, the least role, what it takes and gives.
//     It is served by the table, guarded by it, described by it (OpenAPI), and the tests walk it: a new route is refused to
//     whom it has to be, or a test fails.
//   - A change is in the audit trail before it is tried, and again when it is known what became of it. What cannot be
//     written down is not done.
//   - What the group's settings say takes a second person (Approvals) is kept, word for word, until somebody else who may make
//     the same request approves it; then it is made once, in the name of who has asked, who must still be allowed to. A request
//     that would be refused does not wait.
//   - A request that makes something may bring a key (Idempotency-Key): a repeat makes nothing again. A first one whose
//     node died over it is not made again either: who asks has to look.
//   - Every error leaves through one function, as a problem with code and hint; Translate is the
//     one place where sentinels of other packages become codes.
//   - A request body may not hold a field that this version does not know: a wish that
//     would be ignored is refused (code usage). It is JSON and says so, and has at most 1 MiB.
//   - Every GET has an ETag. With ?wait= and If-None-Match it is answered when the answer
//     differs: Watch only says "look again", and is helped by a slow look of our own.
//     The stream of changes looks once a second at most, however many listen, and queues nothing for who is slow.
//   - A Front believes a token (Authorization: Bearer) or a session's cookie, refuses what calls the daemon by a name that is
//     not its own and what another site's page has made a browser send, and shows nobody a stack. What changes something
//     with a session needs its form token, too.
//   - The socket has mode 0600. A socket file that is left over is removed only when
//     nobody answers at it; one at which somebody answers, and a file that is no socket,
//     are errors, and stay as they are.
//   - Stop ends what is being waited for at once and lets the other requests end, until
//     its context ends. It may come first and may come twice.
package admin
