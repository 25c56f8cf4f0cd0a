package app

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// BenchmarkOverviewMade is what it takes to make an overview anew, of 200 databases with a schedule and five backups each, in
// the embedded ledger: it is kept for a second, and made again when somebody asks after that.
func BenchmarkOverviewMade(b *testing.B) {
	c := config(b)
	c.Databases = nil
	for i := range 200 {
		name := fmt.Sprintf("db%03d", i)
		c.Databases = append(c.Databases, configs.Database{Name: name, DSN: configs.NewDSN("postgres://u@127.0.0.1:1/" + name + "?connect_timeout=1"), RPO: 26 * time.Hour})
		c.Schedules = append(c.Schedules, configs.Schedule{Name: name, Kind: "backup", Database: name, Cron: "0 2 1 1 *"})
	}
	a, err := New(c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	if err := a.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = a.Stop(context.Background()) }()
	for a.stateNow() != "ready" {
		select {
		case <-a.group.Changed():
		case <-time.After(20 * time.Millisecond): // the state has no channel of its own
		}
	}
	for _, d := range c.Databases {
		for age := range 5 {
			at := a.clock.Now().Add(-time.Duration(age) * 24 * time.Hour)
			if err := a.work.ledger.ImportBackup(b.Context(), ledger.Backup{ID: pipeline.NewID(at), Database: d.Name, State: ledger.BackupCompleted, Token: 1, AsOf: at, Created: at, Completed: at,
				Copies: []ledger.Copy{{Storage: "a", State: ledger.CopyPresent, Bytes: 7}}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if o := a.look(b.Context()); len(o.Databases) != 200 {
			b.Fatalf("%d databases: %v", len(o.Databases), o.Problems)
		}
	}
}
