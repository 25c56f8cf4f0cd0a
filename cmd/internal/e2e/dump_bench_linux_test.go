package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/bench"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

var dumpMB = flag.Int64("dump-mb", 64, "what BenchmarkDump backs up and restores: a database whose dump has so many MB")

// BenchmarkDump backs a database up with zstd and age, to one storage and to three, and restores it: by a node, and by the
// shell's pipeline of the public tools. Server, storages and files share one disk. took-s is from the request to the end;
// cpu-s is what the node with its children, or the tools, had of the processors, the server's part apart; peak-MB is the most
// memory that the node itself had, which is started anew for each.
//
//	go test -run none -bench Dump -benchtime 1x -timeout 60m ./cmd/internal/e2e -dump-mb 2048
func BenchmarkDump(b *testing.B) {
	d := newDumped(b)
	for _, m := range []struct {
		name string
		once func(testing.TB) passage
	}{
		{"backup/shell", d.shellBackup},
		{"backup/fencepost", func(t testing.TB) passage { return d.nodeBackup(t, "one") }},
		{"backup/three", func(t testing.TB) passage { return d.nodeBackup(t, "one", "two", "three") }},
		{"restore/shell", d.shellRestore},
		{"restore/fencepost", d.nodeRestore},
	} {
		b.Run(m.name, func(b *testing.B) {
			var took, cpu []time.Duration
			most := int64(0)
			for range b.N {
				p := m.once(b)
				took, cpu, most = append(took, p.took), append(cpu, p.cpu), max(most, p.peak)
			}
			typical := bench.SpreadOf(took).P50.Seconds()
			b.ReportMetric(typical, "took-s")
			b.ReportMetric(float64(*dumpMB)/typical, "MB/s")
			b.ReportMetric(bench.SpreadOf(cpu).P50.Seconds(), "cpu-s")
			if most > 0 {
				b.ReportMetric(float64(most)/(1<<20), "peak-MB")
			}
			b.ReportMetric(0, "ns/op") // of making ready too
		})
	}
}

// passage is what a backup or a restore took.
type passage struct {
	took, cpu time.Duration
	peak      int64 // bytes; 0: not looked at
}

// dumped is a database, the one node that backs it up, and the tools' file of it.
type dumped struct {
	c                   *cluster
	dsn                 string
	recipient, identity string
	file                string
	backup              string // id of the newest
}

func newDumped(b *testing.B) *dumped {
	d := &dumped{dsn: pg.Server(b).Database(b), file: filepath.Join(b.TempDir(), "dump")}
	if err := pgtest.Sample(b.Context(), d.dsn, *dumpMB<<20); err != nil {
		b.Fatal(err)
	}
	d.recipient, d.identity = ageKey(b)
	storages, places := "", b.TempDir()
	for _, name := range []string{"one", "two", "three"} {
		path := filepath.Join(places, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			b.Fatal(err)
		}
		storages += fmt.Sprintf("- {name: %s, kind: local, path: %s}\n", name, path)
	}
	d.c = newCluster(b, options{nodes: 1, lasting: time.Hour, level: "info", dsns: map[string]string{"shop": d.dsn},
		extra: encrypted(d.recipient, d.identity), storages: storages})
	return d
}

// node starts the node anew and gives its process.
func (d *dumped) node() (pid int) {
	d.c.end()
	d.c.up()
	d.c.rest()
	return d.c.processOf("n1")
}

func (d *dumped) nodeBackup(t testing.TB, storages ...string) passage {
	return d.byNode(t, func() (api.Task, error) {
		task, err := d.c.client("n1").CreateBackup(d.c.ctx, api.CreateBackup{Database: "shop", Storages: storages})
		d.backup = task.Backup
		return task, err
	})
}

func (d *dumped) nodeRestore(t testing.TB) passage {
	if d.backup == "" {
		d.nodeBackup(t, "one")
	}
	target := fmt.Sprintf("bench %d", time.Now().UnixNano())
	d.c.targets = append(d.c.targets, target)
	defer pg.Server(t).Exec(t, "postgres", fmt.Sprintf(`DROP DATABASE %q`, target))
	return d.byNode(t, func() (api.Task, error) {
		return d.c.client("n1").Restore(d.c.ctx, api.RestoreBackup{Backup: d.backup, Target: target})
	})
}

// byNode has a new process of the node carry out what is asked.
func (d *dumped) byNode(t testing.TB, ask func() (api.Task, error)) passage {
	pid := d.node()
	before := usedWithChildren(t, pid)
	task, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	for !task.Final { // seldom: answers cost the node something
		select {
		case <-d.c.ctx.Done():
			t.Fatalf("waited in vain for the end of %+v", task)
		case <-time.After(100 * time.Millisecond):
		}
		if task, err = d.c.client("n1").Task(d.c.ctx, task.ID); err != nil {
			t.Fatal(err)
		}
	}
	if task.State != api.Completed || task.Finished == nil {
		t.Fatalf("task ended: %+v", task)
	}
	return passage{took: task.Finished.Sub(task.Created), cpu: usedWithChildren(t, pid) - before, peak: peak(t, pid)}
}

func (d *dumped) shellBackup(t testing.TB) passage {
	return shell(t, `"$1" -Fc -Z0 -d "$2" | zstd -3 -T1 -q | age -r "$3" > "$4"`, pgTool(t, "pg_dump"), d.dsn, d.recipient, d.file)
}

func (d *dumped) shellRestore(t testing.TB) passage {
	if _, err := os.Stat(d.file); err != nil {
		d.shellBackup(t)
	}
	target := pg.Server(t).Database(t)
	return shell(t, `age -d -i "$3" "$4" | zstd -d -q | "$1" --exit-on-error -d "$2"`, pgTool(t, "pg_restore"), target, d.identity, d.file)
}

// shell runs a pipeline, of which every part must end well.
func shell(t testing.TB, script string, args ...string) passage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-o", "pipefail", "-c", script, "bash"}, args...)...)
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatal(errors.Join(err, errors.New(words.String())))
	}
	return passage{took: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}
