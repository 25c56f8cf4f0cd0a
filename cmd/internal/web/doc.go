// Package web is the page: what an operator sees in a browser, rendered on the node and whole without script.
//
//	site := web.New(web.Config{API: handler, Group: "prod", Node: "n1"})
//	front := admin.Front{Handler: site, Refuse: site.Refuse, ...}
//
// It decides nothing. A page shows what routes of the API answer, and a form becomes one request to one route: site calls the
// handler of package admin in the process, in the name of who asks. So there is one place where roles, form tokens, the audit
// trail and the meaning of an action are settled, and it is not here.
//
//   - Views are what is shown (GET), deeds what is done (POST); both are in tables (Views, Deeds), which the mux is made
//     of and the tests walk. A deed names the route of the API that carries it out.
//   - A deed that worked leads on to a page that shows what became of it (303), so that a reload repeats nothing. Each form
//     carries a key: who presses twice gets the answer to the first press (sendings). One that did not work shows its form
//     again, filled as it was, with what is wrong and what to do about it.
//   - A form that comes when its session has ended does nothing, and goes through the log-in: behind it, it is shown again,
//     and waits for the button. So is one that was made in an earlier session.
//   - A form knows what it was made of: what somebody else has changed meanwhile is told, and not undone by accident.
//   - What takes a second person leads to the page of the request that waits, where somebody else approves it.
//   - A form holds the fields that its deed knows, and no others, in at most 64 KiB.
//   - Who is not logged in is led to the log-in, and from there to where they wanted to go, which is a page of ours or none.
//   - Nothing is in line, nothing comes from elsewhere: one sheet, one script, one icon, embedded, with their digests in their
//     addresses. The script only keeps what is marked live up to date (data-live); a page that has it off loads itself again
//     every few seconds. Looking on keeps no session open: it ends when nobody has done anything for its time.
//   - The overview is rendered at most once a second, whoever asks.
//   - Every status is a word first, and a colour second.
package web
