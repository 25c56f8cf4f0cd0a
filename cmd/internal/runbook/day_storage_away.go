// # A storage is not there: its disk is not mounted, or it is empty
//
// You see: the alarm "storage": "has no owner", or "is near mounted?".
//
// It means: the directory is there, but it is not the one that the group has used: the mount below is missing. Nothing is written
// there, nothing is deleted, and no list is taken for empty. Backups go to the other storages.
//
// Do this: mount it. Then look, and have what it lacks copied:
//
//	n1$ fencepost storage check near
//	(exit 1)
//	n1$ mount /srv/near
//	n1$ fencepost storage check near
//	… all is as it should be …
//
// Afterwards: copies that it missed are made by themselves, from the others.
//
// Do not: storage adopt, or an owner.json made by hand: of an empty disk that makes a storage whose backups are all missing. If the
// disk is lost, give the new one a name of its own, and take the old name out of the files.
package runbook
