package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// exportCSV is a host's own step in Go: after each backup it exports a table to a file that is named after the backup. The
// name of the file under construction has the token of the claim, so that two attempts never write to one.
func exportCSV(dsn, table, dir string) component.Config {
	return component.Config{
		Component: "csv",
		Trigger:   component.Trigger{Types: []string{"backup"}, Past: []string{"backup"}, Future: []string{"csv"}},
		Worker: component.Func(func(ctx context.Context, j component.Job) (component.Report, error) {
			part := filepath.Join(dir, fmt.Sprintf("%s.%d.part", j.Item.ID, j.Token))
			out, err := exec.CommandContext(ctx, "psql", "-qXd", dsn, "-c", `\copy `+table+` to `+part+` csv header`).CombinedOutput()
			if err != nil {
				return component.Report{}, fmt.Errorf("export %s: %w: %s", table, err, out)
			}
			return component.Report{}, os.Rename(part, filepath.Join(dir, j.Item.ID+".csv"))
		}),
	}
}

// exportProgram is the same as a program, for the configuration file.
const exportProgram = `#!/bin/sh -e
part=DIR/$WORK_ITEM.$WORK_TOKEN.part
psql -qX -v ON_ERROR_STOP=1 -d 'DSN' -c "\copy orders to $part csv header"
mv "$part" "DIR/$WORK_ITEM.csv"
`

// A host's own component exports a table after each backup, once in Go and once as a program by configuration.
func TestExportAfterEachBackup(t *testing.T) {
	pg := pgtest.New(t, pgtest.Options{})
	bin, err := pgtest.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dsn, err := pg.CreateDatabase(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	sql := `create table orders (customer text, total int); insert into orders values ('ann', 12), ('bob', 30)`
	if out, err := exec.CommandContext(t.Context(), "psql", "-qXd", dsn, "-c", sql).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := config(t)
	c.Databases[0].DSN = configs.NewDSN(dsn)
	inGo, byProgram, program := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "export")
	text := strings.NewReplacer("DIR", byProgram, "DSN", dsn).Replace(exportProgram)
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Components = []configs.Component{{
		Name: "csv-program", Exec: program, Types: []string{"backup"}, Past: []string{"backup"}, Future: []string{"csv-program"},
		Procedure: 2, Simultaneous: 1, Every: time.Minute, Limit: time.Minute, Grace: time.Second, BackOff: time.Minute, QuarantineAfter: 5, Orphans: configs.OrphansFree,
	}}
	a, err := New(c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.AddComponent(exportCSV(dsn, "orders", inGo))
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ready(t, a)
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	for range 2 {
		task, err := client.CreateBackup(t.Context(), api.CreateBackup{Database: "shop"})
		if err == nil {
			task, err = client.WaitTask(t.Context(), task.ID, nil)
		}
		if err != nil || task.State != "completed" {
			t.Fatalf("backup: %+v, %v", task, err)
		}
		for name, dir := range map[string]string{"csv": inGo, "csv-program": byProgram} {
			until(t, a, name+" has exported", func() bool {
				it, err := a.work.items.Get(t.Context(), name, task.Backup)
				e, ok := it.Newest(name)
				return err == nil && ok && e.Success
			})
			got, err := os.ReadFile(filepath.Join(dir, task.Backup+".csv"))
			if err != nil || string(got) != "customer,total\nann,12\nbob,30\n" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		it, err := a.work.items.Get(t.Context(), "csv", task.Backup)
		var data pipeline.BackupData
		if err := errors.Join(err, json.Unmarshal(it.Data, &data)); err != nil || data.Database != "shop" || len(it.Events) != 3 {
			t.Errorf("item %+v, %v", it, err)
		}
	}
}
