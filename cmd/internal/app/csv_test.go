package app

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// exportProgram exports a table to a file that is named after the backup. The name of the file under construction has the
// token of the claim, so that two attempts never write to one. The same in Go is in README.md, and tried in
// cmd/fencepost-example.
const exportProgram = `#!/bin/sh -e
part=DIR/$WORK_ITEM.$WORK_TOKEN.part
psql -qX -v ON_ERROR_STOP=1 -d 'DSN' -c "\copy orders to $part csv header"
mv "$part" "DIR/$WORK_ITEM.csv"
`

// A host's own component, which the configuration file names, exports a table after each backup.
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
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "export")
	text := strings.NewReplacer("DIR", dir, "DSN", dsn).Replace(exportProgram)
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Components = []configs.Component{{
		Name: "csv", Exec: program, Types: []string{"backup"}, Past: []string{"backup"}, Future: []string{"csv"},
		Procedure: 2, Simultaneous: 1, Every: time.Minute, Limit: time.Minute, Grace: time.Second, BackOff: time.Minute, QuarantineAfter: 5, Orphans: configs.OrphansFree,
	}}
	a, _ := start(t, c)
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
		until(t, a, "the table is exported", func() bool {
			it, err := a.work.items.Get(t.Context(), "csv", task.Backup)
			e, ok := it.Newest("csv")
			return err == nil && ok && e.Success
		})
		got, err := os.ReadFile(filepath.Join(dir, task.Backup+".csv"))
		if err != nil || string(got) != "customer,total\nann,12\nbob,30\n" {
			t.Errorf("%q, %v", got, err)
		}
		it, err := a.work.items.Get(t.Context(), "csv", task.Backup)
		var data pipeline.BackupData
		if err := errors.Join(err, json.Unmarshal(it.Data, &data)); err != nil || data.Database != "shop" || len(it.Events) != 2 {
			t.Errorf("item %+v, %v", it, err)
		}
	}
}
