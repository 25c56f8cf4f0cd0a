package ledger

import (
	"testing"

	"github.com/fencepost/fencepost/pipeline/source"
)

// TestChosenPartsAreNoBackupOfTheDatabase: the last good backup is not deleted because a later one holds some tables, which
// itself may always go.
func TestChosenPartsAreNoBackupOfTheDatabase(t *testing.T) {
	whole := Backup{ID: "w", Database: "shop", State: BackupCompleted}
	part := Backup{ID: "p", Database: "shop", State: BackupCompleted}
	part.Info.Options = source.DumpOptions{Tables: []string{"orders"}}
	if part.Good() || !part.Sound() || !whole.Good() {
		t.Errorf("part: good %v, sound %v; whole: good %v", part.Good(), part.Sound(), whole.Good())
	}
	beside := Beside{Backups: []Backup{whole, part}}
	if Deletable(whole, beside) == nil {
		t.Error("the only whole backup may be deleted, because there is one of a table")
	}
	if err := Deletable(part, beside); err != nil {
		t.Error(err)
	}
}
