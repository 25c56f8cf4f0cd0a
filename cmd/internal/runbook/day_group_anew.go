// # Every node is lost, and the group is to be had again
//
// You see: no machine of the group is left. You have a storage, the kit and its passphrase, and machines for new nodes.
//
// It means: a group keeps what it has agreed on in each of its storages: settings, users and tokens, pins, disabled schedules. A new
// group takes that over, and with it the storages and their backups. Databases that must come back first: see group-lost.
//
// Do this: make a first node as on the first day (fencepost init); its file names no storage yet. Start it, and say on it:
//
//	n1$ fencepost group restore --from near --kit shop.kit --passphrase-file phrase --yes
//	state …
//	backups … found
//	Storage near is this group's now.
//	n1$ fencepost status --wait
//	… n1 …
//
// (Without --passphrase-file and --yes it asks.) It ends with code 1 while something is left: a storage that the nodes had in their
// own files is named in the new one, which is restarted; then say the same again.
//
// Afterwards: what else the nodes had in their files goes into the new one: databases, processors. Add the other nodes (fencepost
// node add).
//
// Do not: do it while anything of the old group still runs. Its storages are taken from it.
package runbook
