package app

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/overview"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// awaitOverview asks until the overview is as wanted; want says what is missing, "" for nothing.
func awaitOverview(t *testing.T, c configs.Config, want func(api.Overview) string) api.Overview {
	t.Helper()
	client := api.NewClient(c.Admin.Socket)
	defer client.Close()
	for limit := time.Now().Add(time.Minute); ; {
		o, err := client.Overview(t.Context())
		missing := "an answer"
		if err == nil {
			missing = want(o)
		}
		switch {
		case missing == "":
			return o
		case time.Now().After(limit):
			t.Fatalf("after a minute there is no %s in %+v, %v", missing, o, err)
		}
		select {
		case <-time.After(100 * time.Millisecond): // it is made anew once a second
		case <-t.Context().Done():
		}
	}
}

func alarmed(o api.Overview, kind, about string) bool {
	return slices.ContainsFunc(o.Alarms, func(a api.Alarm) bool { return a.Kind == kind && a.About == about })
}

// TestOverview: a database of which there is no backup, then a good one, then only a suspect newer one; a storage that is
// taken away; the group keeps since when it expects backups.
func TestOverview(t *testing.T) {
	c := config(t)
	c.Databases = append(c.Databases, configs.Database{Name: "books", DSN: c.Databases[0].DSN, RPO: time.Hour}, configs.Database{Name: "lab", DSN: c.Databases[0].DSN, Scratch: true, RPO: time.Hour})
	a, _ := start(t, c)
	ready(t, a)
	o := awaitOverview(t, c, func(o api.Overview) string {
		if len(o.Databases) < 2 || o.Databases[0].Due == nil {
			return "time from which a backup of books is expected"
		}
		return ""
	})
	if o.Health != api.HealthWarned || !alarmed(o, "backup", "books") || len(o.Alarms) != 1 || len(o.Databases) != 2 {
		t.Errorf("%+v", o)
	}
	if s := o.Databases[1]; s.Name != "shop" || s.State != api.BackupsUnwatched {
		t.Errorf("nobody expects a backup of shop: %+v", s)
	}
	since := a.expectedSince()["books"]
	if err := a.expectFrom(t.Context()); err != nil || !a.expectedSince()["books"].Equal(since) || since.IsZero() {
		t.Errorf("expected since %v, then %v, %v", since, a.expectedSince(), err)
	}

	put := func(id string, age time.Duration, suspect ...string) {
		t.Helper()
		at := a.clock.Now().Add(-age)
		err := a.work.ledger.ImportBackup(t.Context(), ledger.Backup{ID: id, Database: "books", State: ledger.BackupCompleted, Token: 1, AsOf: at, Created: at, Completed: at,
			Copies: []ledger.Copy{{Storage: "a", State: ledger.CopyPresent, Bytes: 7}}, Suspect: suspect})
		if err != nil {
			t.Fatal(err)
		}
	}
	good := pipeline.NewID(time.Now())
	put(good, 30*time.Minute)
	for range 2 * goodPage { // the good one is not on the first page
		put(pipeline.NewID(time.Now()), time.Minute, "half the size")
	}
	o = awaitOverview(t, c, func(o api.Overview) string {
		if !alarmed(o, "suspect", "books") || o.Databases[0].Backup != good {
			return "good backup, and suspicion of the newest"
		}
		return ""
	})
	if s := o.Databases[0]; s.State != api.BackupsGood || len(s.Storages) != 1 || s.Bytes != 7 || alarmed(o, "backup", "books") {
		t.Errorf("%+v", o)
	}

	seen := func(page int) (d overview.Database) {
		t.Helper()
		d.Name = "books"
		n, err := readNewest(t.Context(), a.work.ledger, page)
		if err == nil {
			err = n.add(t.Context(), &d)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := seen(newestPage)
	for _, page := range []int{1, goodPage, 2 * goodPage, 2*goodPage + 1} { // what the page of all does not tell is asked for
		if d := cmp.Diff(want, seen(page)); d != "" || want.Good == nil || want.Good.ID != good {
			t.Errorf("by a page of %d: %s", page, d)
		}
	}

	a.mu.Lock()
	a.shelves = map[string]api.StorageState{"b": {Name: "b", State: "away", Problem: "refused"}}
	a.mu.Unlock()
	o = awaitOverview(t, c, func(o api.Overview) string {
		if !alarmed(o, "storage", "b on n1") {
			return "alarm about the storage"
		}
		return ""
	})
	if got := localAlarms(o); len(got) != 1 || got[0].About != "b on n1" {
		t.Errorf("the others are told %+v", got)
	}
	if wrote, err := a.publishAlarms(t.Context(), true); err != nil {
		t.Error(wrote, err)
	}
	if wrote, err := a.publishAlarms(t.Context(), true); err != nil || wrote {
		t.Errorf("the same was written twice: %v", err)
	}
	if a.othersAlarms() != nil {
		t.Error("its own alarms are no other's")
	}
}
