// Package accounts says who somebody is and what they may do: users with passwords, their sessions in a browser, and tokens
// for programs.
//
//	a := accounts.New(accounts.Config{Store: store})
//	user, err := a.AddUser(ctx, accounts.NewUser{Name: "ann", Role: api.RoleOperator, Password: typed}, "socket:root")
//	s, err := a.LogIn(ctx, "ann", typed, "192.0.2.7")       // s.Cookie goes to the browser
//	actor, err := a.OfSession(ctx, s.Cookie, now)           // at each request
//	secret, token, err := a.AddToken(ctx, accounts.NewToken{User: "ann", Name: "ci", Role: api.RoleViewer}, "ann")
//	actor, err = a.OfToken(ctx, secret)
//
// What holds:
//
//   - There is no first password. The first user is added by somebody who may use the daemon's socket, and who is so the
//     same person as may read its home.
//   - Of passwords only an argon2id hash is kept, with its parameters, so that they can grow: a log-in rewrites a weaker one.
//     Of cookies and tokens only a SHA-256 is kept, which is enough for 32 random bytes.
//   - An unknown name, a wrong password, a disabled and a locked user are told apart nowhere outside: same answer, same work.
//   - Five wrong passwords in a row lock a user for a minute, each further one for twice as long, up to an hour. It is kept
//     with the user, so that another node knows it. Attempts of one address, and all together, are limited before that, on
//     each node (Limiter).
//   - A session ends after Idle without a request (LookOn is none), after Max in any case, with its user, with a change of the user's
//     password or role, and by LogOut. A token ends at its time, which it always has, and with its user; it never may more
//     than its user may now.
//   - Who is logged in can be the second person of an approval (Actor.Approves), and so can a token that its user has made for
//     that; who comes over the socket cannot, since it does not say which person it is.
//   - Form tokens are made of the session's secret: who does not have the cookie cannot make one, and none is kept.
//
// Actor travels in the context of a request (With, Of). The package knows nothing of HTTP.
package accounts
