// Package certs is what the members of a group prove themselves with: one authority (CA) for the group, and one
// certificate per node, which names the group and the node in a URI, fencepost://<group>/<node>. Host names and addresses
// may be in it for browsers; the members do not look at them: a node may move.
//
//	ca, err := certs.NewAuthority("shop", 10*365*24*time.Hour)
//	pair, err := ca.Issue(certs.Name{Group: "shop", Node: "n1"}, 365*24*time.Hour)
//	// ca.Certificate(), pair.Certificate and pair.Key are PEM: files that every node, and this node, gets
//	cfg.Certificates = certs.Files("/etc/fencepost/n1.pem", "/etc/fencepost/n1.key", "/etc/fencepost/ca.pem")
//
// [Keeper] is how they are used: it reads the sources again for each connection, so that a renewed certificate needs no
// restart, and goes on with the last good ones while a reading fails.
//
// What it promises:
//
//   - A certificate counts only with exactly one name, of the wanted group, signed by the authority, within its time. Each
//     reason why one does not is an error of its own, with the name and the date in it.
//   - Whatever is read is bounded, and never fails but with an error. No error holds a key.
//   - Keys are ECDSA on P-256, which browsers take, too; older ones of ed25519 go on to count. The authority's key is needed to issue and to renew, never by a running node.
//
// What it does not do: it writes no files and opens no connections; there is no list of revoked certificates: who must not
// come back any more is kept out by a new authority.
package certs
