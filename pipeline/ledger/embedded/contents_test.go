package embedded_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded/embeddedtest"
)

// A ledger that is filled with what another one holds holds the same, and nothing of what it held before.
func TestContents(t *testing.T) {
	ctx := t.Context()
	made := func() (*embedded.Ledger, *embeddedtest.Store) {
		t.Helper()
		store := embeddedtest.NewStore()
		store.OpenRun("aa")
		led, err := embedded.New(embedded.Config{Store: store, Now: func() time.Time { return time.Unix(1000, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		return led, store
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	from, store := made()
	for _, id := range []string{"t1", "t2"} {
		must(from.Plan(ctx, ledger.Task{ID: id, Type: ledger.Create, MaxAttempts: 3, Database: "shop", Backup: "b-" + id, Error: strings.Repeat("x", 900)}))
	}
	token, err := store.Claim("backup", "t1", "aa")
	must(err)
	g := ledger.Guard{Run: "aa", Component: "backup", Item: "t1", Token: token}
	_, err = from.Take(ctx, g, "t1", "n1")
	must(err)
	row, err := from.Task(ctx, "t1")
	must(err)
	must(from.AppendLog(ctx, g, []ledger.LogLine{{At: time.Unix(9, 0).UTC(), Text: "begun"}}))
	must(from.NoteError(ctx, g, "half a file"))
	row.State = ledger.Uploading
	must(from.Write(ctx, g, ledger.Change{Task: row, Backup: &ledger.Backup{ID: "b-t1", Database: "shop", State: ledger.BackupCreating, Token: token}}))
	must(from.RequestCancel(ctx, "t1", "ann"))
	_, err = embedded.NewItems(from, nil).Put(ctx, component.Item{ID: "a~b", Type: "file"}, false)
	must(err)

	first, err := from.Contents(ctx)
	must(err)
	if len(first.Tasks) != 2 || len(first.Backups) != 1 || len(first.Logs) != 1 || len(first.Errors) != 1 || len(first.Items) != 1 || first.Highest() != token {
		t.Fatalf("%+v", first)
	}
	to, _ := made()
	must(to.Plan(ctx, ledger.Task{ID: "older", MaxAttempts: 1}))
	for range 2 { // one that ended in the middle is simply done again
		must(to.Fill(ctx, first))
	}
	second, err := to.Contents(ctx)
	must(err)
	for _, c := range []*ledger.Contents{&first, &second} {
		for i := range c.Errors {
			c.Errors[i].Seq = 0
		}
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("(-was +is)\n%s", diff)
	}
	if it, err := embedded.NewItems(to, nil).Get(ctx, "c", "a~b"); err != nil || it.Type != "file" {
		t.Errorf("item %+v, %v", it, err)
	}
	must(to.Clear(ctx))
	if left, err := to.Contents(ctx); err != nil || len(left.Tasks)+len(left.Backups)+len(left.Logs)+len(left.Errors)+len(left.Items) != 0 {
		t.Errorf("left %+v, %v", left, err)
	}
}
