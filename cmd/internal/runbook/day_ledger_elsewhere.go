// # A node says that the group keeps its ledger elsewhere
//
// You see: one node is not ready, and says that the group uses another ledger, or has one where its file names none. The others
// work.
//
// It means: the ledger.dsn of that node's file leads to another database than the group uses: a copy, a staging server, a
// misspelling. It does nothing with it.
//
// Do this: see what each side means, and give the node the ledger.dsn of the others:
//
//	n3$ fencepost ledger show
//	… not in use by this node
//	n3$ sed -i "s|^ledger: .*|$LEDGER|" /etc/fencepost/node.yaml
//	n3$ systemctl restart fencepostd
//	n3$ fencepost status --wait
//	… n3 …
//
// (LEDGER is the line of another node's file.) To have the ledger elsewhere on purpose, name an empty database on a node that works;
// then change all files, and start the nodes again:
//
//	n1$ fencepost ledger move --to "$ELSEWHERE"
//	Moved …
//
// Do not: move the ledger to make one node happy.
package runbook
