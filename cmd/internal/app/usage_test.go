package app

import (
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// TestUsage: what the ledger knows is added up, and a directory tells what is left.
func TestUsage(t *testing.T) {
	c := config(t)
	a, _ := start(t, c)
	ready(t, a)
	for range 3 {
		at := a.clock.Now().Add(-time.Hour)
		err := a.work.ledger.ImportBackup(t.Context(), ledger.Backup{ID: pipeline.NewID(time.Now()), Database: "shop", State: ledger.BackupCompleted, Token: 1, AsOf: at, Created: at, Completed: at,
			Copies: []ledger.Copy{{Storage: "a", State: ledger.CopyPresent, Bytes: 1000}, {Storage: "b", State: ledger.CopyMissing}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	u, err := client.Usage(t.Context())
	if err != nil || len(u.Storages) != 2 || len(u.Databases) != 1 {
		t.Fatalf("%+v, %v", u, err)
	}
	if s := u.Storages[0]; s.Storage != "a" || s.Bytes != 3000 || s.Backups != 3 || s.Free == nil || *s.Free <= 0 || s.Full != nil {
		t.Errorf("%+v", s)
	}
	if s := u.Storages[1]; s.Bytes != 0 || s.Backups != 0 || s.Free == nil {
		t.Errorf("%+v", s)
	}
	if d := u.Databases[0]; d.Database != "shop" || d.Bytes != 3000 || d.Copies != 3 {
		t.Errorf("%+v", d)
	}
	gone := keptOf(ledger.Backup{Completed: time.Now(), Gone: time.Now(), Copies: []ledger.Copy{{Storage: "a", State: ledger.CopyPresent}}})
	if len(gone) != 1 || gone[0].Gone.IsZero() || keptOf(ledger.Backup{Copies: []ledger.Copy{{State: ledger.CopyPresent}}}) != nil {
		t.Errorf("%+v", gone)
	}
}
