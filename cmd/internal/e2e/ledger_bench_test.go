package e2e

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/bench"
)

var ledgerTasks = flag.Int("tasks", 10_000, "how many ended tasks the ledger of BenchmarkLedger holds")

// BenchmarkLedger asks a node whose ledger is a database full of ended tasks for what pages show: the newest tasks, a page from
// the middle of all of them, the overview. Each is one request over the admin socket, answered before the next.
//
//	go test -run none -bench Ledger$ -benchtime 200x ./cmd/internal/e2e -tasks 1000000
func BenchmarkLedger(b *testing.B) {
	dsn, extra := ledgerIn(b)
	c := newCluster(b, options{nodes: 1, lasting: time.Hour, level: "info", extra: extra,
		dsns: map[string]string{"shop": database(b, bulk("goods", 1))}})
	c.up()
	c.finishes("n1", c.backup("n1").ID)
	multiplyTasks(b, dsn, *ledgerTasks)
	client := c.client("n1")
	const page = 100
	tasks := func(after string) func(context.Context) error {
		return func(ctx context.Context) error {
			list, err := client.Tasks(ctx, api.TaskFilter{Limit: page, After: after})
			if err == nil && len(list) != page {
				err = fmt.Errorf("a page of %d tasks", len(list))
			}
			return err
		}
	}
	for _, m := range []struct {
		name string
		ask  func(context.Context) error
	}{
		{"newest", tasks("")},
		{"middle", tasks(fmt.Sprintf("bench-%d", *ledgerTasks/2))},
		{"overview", func(ctx context.Context) error { _, err := client.Overview(ctx); return err }},
	} {
		b.Run(m.name, func(b *testing.B) {
			var took []time.Duration
			for range b.N {
				asked := time.Now()
				if err := m.ask(c.ctx); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(asked))
			}
			bench.SpreadOf(took).Report(b)
		})
	}
}

// multiplyTasks puts n tasks into a ledger, each like the one in it that has ended, each a second older than the one before.
func multiplyTasks(t testing.TB, dsn string, n int) {
	t.Helper()
	const columns = "type, run_type, state, attempt, max_attempts, database, backup, node, run, token, detail, write"
	const some = 100_000 // in one transaction
	for from := 1; from <= n; from += some {
		execute(t, dsn, fmt.Sprintf(`INSERT INTO fencepost_ledger.tasks (id, created, updated, finished, %s)
			SELECT 'bench-' || i, created - i * interval '1 second', updated - i * interval '1 second', finished - i * interval '1 second', %s
			FROM (SELECT * FROM fencepost_ledger.tasks WHERE state = 'completed' AND id NOT LIKE 'bench-%%' LIMIT 1) one, generate_series(%d, %d) i`,
			columns, columns, from, min(from+some-1, n)))
	}
	execute(t, dsn, "ANALYZE fencepost_ledger.tasks")
}
