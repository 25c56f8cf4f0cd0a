// # Nothing is left but a kit and one storage
//
// You see: no machine of the group is left. You have the kit (one file), its passphrase, and a storage.
//
// It means: all that is needed to restore is in these. It takes no group and no daemon: a machine with the program fencepost,
// PostgreSQL's client programs, and a way to an empty PostgreSQL server, whose superuser's connection string is in new.dsn:
//
//	postgres://postgres:PASSWORD@HOST/postgres
//
// Do this: unpack the kit, look at the plan, and carry it out:
//
//	new$ fencepost kit open shop.kit --dir here --passphrase-file phrase
//	The kit is in here; …
//	new$ fencepost restore --server pg1 --to file:new.dsn --config here/restore.yaml --dry-run
//	Roles and tablespaces of backup … to be made: …
//	new$ fencepost restore --server pg1 --to file:new.dsn --config here/restore.yaml --yes pg1
//	All of the plan is done: …
//
// (Without --passphrase-file and --yes it asks.) After an interruption of any kind, also of the machine, give the last command again:
// it goes on where it ended. --as-of "2026-05-02 14:30" takes nothing younger.
//
// Afterwards: the plan names roles that have no password now: ALTER ROLE name PASSWORD '...'. To have backups again, make a new group
// (fencepost init), name the storage in its files, and fencepost storage adopt it.
//
// Do not: restore over a server that works. No database that is there is replaced; but roles are made.
package runbook
