// Package runbook is the pages for bad days: what somebody reads at three in the morning, one page for each thing that can have
// happened. `fencepost runbook` lists them, `fencepost runbook NAME` prints one; each is the doc comment of one file here.
//
// A page says what you see, what it means, what to do, and what not to do. Its commands stand after the name of the machine on
// which they are given, and below each what it answers; "…" stands for what differs from day to day:
//
//	n1$ fencepost node replace n3
//	n3 may come with …
//
// n1 and n2 are nodes that work, n3 is the one that the page is about; ca is the machine that has the group's ca.key, new one that
// has nothing but the program fencepost and PostgreSQL's own. A node's configuration is /etc/fencepost/node.yaml, its home
// /var/lib/fencepost, and it is started by systemd, as packages do it. (exit N) below a command is its exit code, when it is not 0.
// The database is called shop, its server pg1, the storages near and far.
//
// What is promised: no page has a command that was not tried. Tests bring each bad day about, with real processes, and then do
// word for word what the page says (package e2e, cluster.follow); a page that no test follows fails the tests of this package, and
// so does one that the README does not list.
package runbook
