package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

// afterwards is a component that writes each item it is given on a line of a file.
func afterwards(t *testing.T, name, file string) configs.Component {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	text := "#!/bin/sh -e\nitem=$(tr -d '\\n')\nprintf '%s\\n' \"$item\" >> " + file + "\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return configs.Component{
		Name: name, Exec: program, Types: []string{"backup"}, Old: []string{name},
		Procedure: 2, Simultaneous: 1, Every: time.Minute, Limit: time.Minute, Grace: time.Second, BackOff: time.Minute, QuarantineAfter: 5, Orphans: configs.OrphansFree,
	}
}

// A host's own components begin when a backup has been verified: one after each good verification, one after each bad one,
// again and again.
func TestAfterEachVerification(t *testing.T) {
	pg := pgtest.New(t, pgtest.Options{})
	dsn, err := pg.CreateDatabase(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	c := config(t)
	c.Databases[0].DSN = configs.NewDSN(dsn)
	published, rung := filepath.Join(t.TempDir(), "published"), filepath.Join(t.TempDir(), "rung")
	publish, ring := afterwards(t, "publish", published), afterwards(t, "ring", rung)
	publish.Past, ring.PastFailed = []string{"verify"}, []string{"verify"}
	c.Components = []configs.Component{publish, ring}
	a, _ := start(t, c)
	ready(t, a)
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	done := func(task api.Task, err error) api.Task {
		t.Helper()
		if err == nil {
			task, err = client.WaitTask(t.Context(), task.ID, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	lines := func(file string, want int) string {
		t.Helper()
		var text []byte
		until(t, a, fmt.Sprintf("%s has %d lines", filepath.Base(file), want), func() bool {
			text, _ = os.ReadFile(file)
			return strings.Count(string(text), "\n") == want
		})
		return string(text)
	}
	b := done(client.CreateBackup(t.Context(), api.CreateBackup{Database: "shop"})).Backup
	for n := range 2 {
		if task := done(client.VerifyBackup(t.Context(), b, api.VerifyBackup{})); task.State != "completed" {
			t.Fatalf("verification: %+v", task)
		}
		if got := lines(published, n+1); strings.Count(got, b) < n+1 || strings.Contains(got, `"success":false`) {
			t.Errorf("published: %q", got)
		}
	}
	if err := filepath.WalkDir(c.Storages[0].Path, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "/data") {
			err = os.Truncate(path, 10)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if task := done(client.VerifyBackup(t.Context(), b, api.VerifyBackup{})); task.State != "failed" {
		t.Fatalf("verification of a cut backup: %+v", task)
	}
	if got := lines(rung, 1); !strings.Contains(got, `"success":false`) || !strings.Contains(got, "corrupt") {
		t.Errorf("rung: %q", got)
	}
	lines(published, 2)
}
