package offline

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// TestPlanOfAServer is the table of what is chosen for a server, and of what is not.
func TestPlanOfAServer(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 5, 2, hour, 0, 0, 0, time.UTC) }
	backup := func(id, database, target, system string, hour int, change func(*ledger.Backup)) ledger.Backup {
		b := ledger.Backup{ID: id, Database: database, State: ledger.BackupCompleted, AsOf: at(hour), RawBytes: 10, Copies: []ledger.Copy{{Storage: "near", Bytes: 3}, {Storage: "far", Bytes: 4}},
			Info: source.Info{Database: target, SystemID: system, Globals: &source.Globals{}}}
		if change != nil {
			change(&b)
		}
		return b
	}
	suspect := func(b *ledger.Backup) { b.Suspect = []string{"half the usual size"} }
	partly := func(b *ledger.Backup) { b.Info.Options.Tables = []string{"goods"} }
	noRoles := func(b *ledger.Backup) { b.Info.Globals = &source.Globals{Lacking: "no right"} }
	list := []ledger.Backup{
		backup("s1", "pg1.shop", "shop", "7", 1, nil),
		backup("s2", "pg1.shop", "shop", "7", 5, nil),
		backup("s3", "pg1.shop", "shop", "7", 6, suspect),
		backup("s4", "pg1.shop", "shop", "7", 7, partly),
		backup("s9", "pg1.shop", "shop", "7", 9, nil),
		backup("m1", "mall", "mall", "7", 4, noRoles), // of the node's own file, on the same server
		backup("l9", "pg1.late", "late", "7", 9, nil),
		backup("b1", "pg1.bad", "bad", "7", 2, suspect),
		backup("p1", "pg1.postgres", "postgres", "7", 2, nil),
		backup("x1", "pg2.shop", "shop", "8", 5, nil),
		backup("y1", "pg10.shop", "shop", "", 5, nil),
	}
	shown := func(p ServerPlan) string {
		var out []string
		for _, d := range p.Databases {
			out = append(out, fmt.Sprintf("%s of %s (%d bytes, %s)", d.Target, d.Backup, d.StoredBytes, strings.Join(d.Storages, "+")))
		}
		for _, l := range p.Lacking {
			out = append(out, l.Target+": "+l.Why)
		}
		return strings.Join(out, "; ") + "; roles of " + p.Globals
	}
	for _, c := range []struct {
		server string
		hour   int
		want   string
	}{
		{"pg1", 8, "mall of m1 (4 bytes, near+far); shop of s2 (4 bytes, near+far); bad: none of its 1 backups is a good one of the whole database; " +
			"late: its first backup is as of 2026-05-02T09:00:00Z; postgres: it is the database in which others are made and renamed: restore it under another name (storage restore --as); roles of s4"},
		{"mall", 5, "mall of m1 (4 bytes, near+far); shop of s2 (4 bytes, near+far); bad: none of its 1 backups is a good one of the whole database; " +
			"late: its first backup is as of 2026-05-02T09:00:00Z; postgres: it is the database in which others are made and renamed: restore it under another name (storage restore --as); roles of s2"},
		{"pg2", 8, "shop of x1 (4 bytes, near+far); roles of x1"},
		{"pg10", 8, "shop of y1 (4 bytes, near+far); roles of y1"},
		{"pg2", 1, "shop: its first backup is as of 2026-05-02T05:00:00Z; roles of "},
	} {
		p, err := planServer(list, c.server, at(c.hour))
		if got := shown(p); err != nil || got != c.want {
			t.Errorf("%s as of %d:\n%s\nwant\n%s\n%v", c.server, c.hour, got, c.want, err)
		}
	}
	_, err := planServer(list, "pg3", at(8))
	var own interface{ Hint() string }
	if !errors.As(err, &own) || !strings.Contains(own.Hint(), "mall, pg1, pg10, pg2") {
		t.Errorf("an unknown server: %v", err)
	}
}

// TestPlanIsTakenOver: who carries a plan out later is the only one who writes it; one that is killed leaves the whole of it.
func TestPlanIsTakenOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.json")
	p := ServerPlan{Server: "pg1", To: "new:5432", System: "9", Made: time.Now().UTC(), Databases: []ServerDatabase{{Target: "shop", Backup: "s2"}}}
	first := &ServerRun{file: file, plan: p}
	if err := first.takeOver("one"); err != nil {
		t.Fatal(err)
	}
	first.plan.Databases[0].Attempt = 5
	if err := first.keep(); err != nil {
		t.Fatal(err)
	}
	there, err := readPlan(file)
	if err != nil || there.Databases[0].Attempt != 5 {
		t.Fatalf("%+v, %v", there, err)
	}
	second := &ServerRun{file: file, plan: there}
	if err := second.takeOver("two"); err != nil {
		t.Fatal(err)
	}
	first.plan.Databases[0].Done = new(time.Now())
	if err := first.keep(); !errors.Is(err, errTakenOver) {
		t.Errorf("the first one goes on writing: %v", err)
	}
	if err := second.keep(); err != nil {
		t.Error(err)
	}
	for name, o := range map[string]struct {
		options         ServerRestore
		system, address string
		good            bool
	}{
		"the same":            {ServerRestore{Server: "pg1"}, "9", "moved:5432", true},
		"another server":      {ServerRestore{Server: "pg1"}, "10", "new:5432", false},
		"of another server":   {ServerRestore{Server: "pg2"}, "9", "new:5432", false},
		"as of another night": {ServerRestore{Server: "pg1", AsOf: time.Now()}, "9", "new:5432", false},
	} {
		r := &ServerRun{file: file, plan: there, options: o.options}
		if err := r.same(o.system, o.address); (err == nil) != o.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
