// # A storage belongs to another group
//
// You see: a node ends when it is started: "storage belongs to another cluster"; or, of one that runs, the alarm "storage" says so.
//
// It means: its owner is another group than this one: an older one of yours that is no more, or one that still works there. Nothing
// is written there, nothing is deleted.
//
// Do this: find out which. If a group works there, take the storage out of this one's files: this was a mistake. If that group is no
// more, take it over, on a node that has it, and start what has ended:
//
//	n1$ fencepost storage adopt near --config /etc/fencepost/node.yaml --yes
//	Storage near is the group's own; …
//	n1$ systemctl start fencepostd
//	n1$ fencepost status --wait
//	… n1 …
//
// Afterwards: its backups are foreign ones: fencepost storage check near lists them, restore --accept-foreign restores them.
//
// Do not: adopt what production uses from a copy of it (a staging clone with the same keys).
package runbook
