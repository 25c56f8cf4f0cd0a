package ledger

import (
	"fmt"
	"time"
)

// Imported decides ImportBackup: the entry to store, with the mark that it comes with.
func Imported(b Backup, now time.Time) (Backup, error) {
	if err := ValidID(b.ID); err != nil {
		return Backup{}, fmt.Errorf("import backup: %w", err)
	}
	if b.State != BackupCompleted || b.Token == 0 || len(b.Copies) == 0 {
		return Backup{}, fmt.Errorf("import backup %s: it is %s, with token %d and %d copies", b.ID, b.State, b.Token, len(b.Copies))
	}
	if b.Created.IsZero() {
		b.Created = now
	}
	if b.Completed.IsZero() {
		b.Completed = now
	}
	b.Gone = time.Time{}
	return b, nil
}
