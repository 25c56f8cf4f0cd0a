package pipeline

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

func TestSuspicions(t *testing.T) {
	backup := func(change func(*ledger.Backup)) ledger.Backup {
		b := ledger.Backup{ID: "b", State: ledger.BackupCompleted, RawBytes: 1000, Info: source.Info{
			SystemID: "1", Counts: map[string]int64{"tables": 10}, Globals: &source.Globals{},
		}}
		change(&b)
		return b
	}
	usual := backup(func(b *ledger.Backup) { b.ID = "a" })
	for want, change := range map[string]func(*ledger.Backup){
		"":                  func(*ledger.Backup) {},
		"another server":    func(b *ledger.Backup) { b.Info.SystemID = "2" },
		"half of the usual": func(b *ledger.Backup) { b.RawBytes = 499 },
		"4 tables":          func(b *ledger.Backup) { b.Info.Counts = map[string]int64{"tables": 4} },
		"may not read":      func(b *ledger.Backup) { b.Info.Globals = &source.Globals{Lacking: "the role may not read pg_roles"} },
	} {
		why := Suspicions(backup(change), []ledger.Backup{usual})
		if got := strings.Join(why, "; "); !strings.Contains(got, want) || len(why) > 1 || (want == "") != (why == nil) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
	none := func(b *ledger.Backup) { b.Info.Globals = &source.Globals{Lacking: "x"} }
	never := backup(none)
	never.ID = "a"
	if why := Suspicions(backup(none), []ledger.Backup{never}); why != nil {
		t.Errorf("a server whose roles are never read is suspect: %v", why)
	}
	if why := Suspicions(backup(func(b *ledger.Backup) { b.Info.Options.SchemaOnly, b.RawBytes = true, 1 }), []ledger.Backup{usual}); why != nil {
		t.Errorf("another kind of backup is compared: %v", why)
	}
}
