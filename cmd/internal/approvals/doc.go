// Package approvals keeps requests that need a second person: who asked for what, until when it waits, who decided, and what
// became of it.
//
//	desk := approvals.New(store, time.Now)
//	a, err := desk.Ask(ctx, approvals.Request{Approval: what, Most: actor.Most})    // by ann
//	...
//	err = approvals.May(a, bob, account, now)                                        // why bob may not; nil: he may
//	a, err = desk.Approve(ctx, a.ID, bob)                                            // ErrConflict of code: somebody has decided
//	...                                                                              // carried out, once
//	a, err = desk.End(ctx, a.ID, outcome)
//
// What holds:
//
//   - What is approved is what was asked: a request is written once, and only its state and what became of it change.
//   - One decision counts, whoever else decides at the same time on whatever node. It is committed before anything is carried
//     out, so that nothing is carried out twice: a request whose node died over it stays approved, and who wants it asks anew.
//   - Nobody approves what their own account has asked for, by whatever session or token, nor with an account that is newer
//     than the request, or whose password or role was changed since: who can give out passwords could be both. Over the
//     socket, which does not say which person asks, nobody approves anything, and with a token only who made it for that.
//   - A request that nobody has decided about in time is expired: a clock says so, nobody has to write it.
//
// It is a protection from mistakes, and from one stolen session or token. An admin who makes a second account long before can
// be two persons; the audit trail shows that account's making.
//
// The package knows nothing of HTTP: which requests need it, who may do what, and carrying out are the caller's.
package approvals
