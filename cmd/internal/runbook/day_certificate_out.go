// # A node's certificate has run out, or is about to
//
// You see: the alarm "certificate", 30 days before; after the day fencepost members names the node and its certificate.
//
// It means: the others refuse what it says. Its work is recovered by them.
//
// Do this, where ca.key is; then copy the new one to the node:
//
//	ca$ fencepost certs renew --dir /etc/fencepost/ca --node n3
//	… n3 …
//	ca$ scp /etc/fencepost/ca/n3.pem n3:/etc/fencepost/n3.pem
//	n3$ fencepost members
//	… n3 …
//
// Nothing is restarted: nodes read their files at each handshake.
//
// Afterwards: write the next date into a calendar that people read. fencepost certs show DIR lists all.
//
// Do not: renew the authority for that: ca.pem has a date of its own (page authority-seen).
package runbook
