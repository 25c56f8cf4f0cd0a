package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
)

// lying puts objects of a size into an inventory.
func lying(m *Manifest, sizes map[string]int64) *found { return &found{parts: sizes, manifest: m} }

func TestDiagnose(t *testing.T) {
	whole := goodManifest()
	tomb, old := Tombstone("b1", 7, "test", noon), Tombstone("b1", 7, "test", noon.Add(-9*24*time.Hour))
	right := map[string]int64{source.PartData: 5, source.PartDatabase: 2}
	entry := func(token uint64, s ledger.BackupState) map[string]ledger.Backup {
		return map[string]ledger.Backup{"b1": {ID: "b1", Token: token, State: s, Copies: []ledger.Copy{{Storage: "one", State: ledger.CopyPresent}}}}
	}
	foreign := lying(&whole, right)
	foreign.foreign = Judge(whole, "c1", knows())
	for name, c := range map[string]struct {
		f       *found
		entries map[string]ledger.Backup
		active  []ledger.Task
		want    string // kinds; "!" behind fixable ones
	}{
		"all is well":                     {lying(&whole, right), entry(7, ledger.BackupCompleted), nil, ""},
		"not in the ledger":               {lying(&whole, right), nil, nil, "unknown"},
		"not ours":                        {foreign, nil, nil, "foreign"},
		"a manifest that says nothing":    {&found{parts: right, broken: errManifest}, entry(7, ledger.BackupCompleted), nil, "broken"},
		"an object is missing":            {lying(&whole, map[string]int64{source.PartData: 5}), entry(7, ledger.BackupCompleted), nil, "missing"},
		"an object is cut":                {lying(&whole, map[string]int64{source.PartData: 4, source.PartDatabase: 2}), nil, nil, "wrong size"},
		"an object too many":              {lying(&whole, map[string]int64{source.PartData: 5, source.PartDatabase: 2, "x": 1}), entry(7, ledger.BackupCompleted), nil, "partial"},
		"never committed":                 {lying(nil, right), nil, nil, "partial!"},
		"never committed, a later counts": {lying(nil, right), entry(9, ledger.BackupCreating), nil, "partial!"},
		"never committed, and counts":     {lying(nil, right), entry(7, ledger.BackupCompleted), nil, "missing"},
		"data beside a tombstone":         {lying(&tomb, right), nil, nil, "partial!"},
		"a tombstone":                     {lying(&tomb, nil), nil, nil, "tombstone"},
		"a tombstone of long ago":         {lying(&old, nil), nil, nil, "tombstone!"},
		"nothing of a copy":               {nil, entry(7, ledger.BackupCompleted), nil, "missing"},
		"nothing of a gone one":           {nil, entry(7, ledger.BackupGone), nil, ""},
		"in work":                         {lying(nil, right), nil, []ledger.Task{{Backup: "b1", Token: 7}}, ""},
		"a task is at work on it":         {nil, entry(7, ledger.BackupCompleted), []ledger.Task{{Backup: "b1", Type: ledger.Replicate}}, ""},
	} {
		inv := inventory{attempts: map[string]map[uint64]*found{}}
		if c.f != nil {
			inv.attempts["b1"] = map[uint64]*found{7: c.f}
		}
		var got []string
		for _, f := range diagnose("one", inv, catalogued{entries: c.entries, active: c.active}, noon) {
			kind := f.Kind
			if f.Fixable {
				kind += "!"
			}
			if f.Storage != "one" || f.Backup != "b1" || f.Token != 7 || f.Problem == "" || strings.Contains(f.Problem, "\n") {
				t.Errorf("%s: %+v", name, f)
			}
			got = append(got, kind)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

// kinds are those of the findings, with what was fixed.
func kinds(list []Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, fmt.Sprintf("%s/%d/%v", f.Kind, f.Token, f.Fixed))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// A check finds what is wrong and changes nothing; with fix it removes what nothing counts, behind a tombstone.
func TestCheckStorage(t *testing.T) {
	inRig(t, func(r *rig) {
		var later atomic.Int64 // of the worker's clock
		n := r.start("n1", func(c *Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) } }, nil)
		b := r.awaitState(r.backup("all").ID, ledger.Completed)
		check := func(fix bool, want string) {
			t.Helper()
			list, err := n.w.CheckStorage(r.Context(), "one", fix)
			if err != nil || kinds(list) != want {
				t.Errorf("found %q (%+v), %v, want %q", kinds(list), list, err, want)
			}
		}
		check(true, "")
		put := func(name string) {
			t.Helper()
			r.must(discard2(r.disks["one"].Put(r.Context(), name, strings.NewReader("x"), storage.Condition{})))
		}
		put(ObjectPath("nobody", 5, "data"))
		put("a picture.jpg")
		r.must(r.disks["one"].Delete(r.Context(), ObjectPath(b.Backup, b.Token, "data")))
		want := fmt.Sprintf("missing/%d/false partial/5/%%v stray/0/false", b.Token)
		check(false, fmt.Sprintf(want, false))
		check(false, fmt.Sprintf(want, false))
		check(true, fmt.Sprintf(want, true))
		check(false, fmt.Sprintf("missing/%d/false stray/0/false tombstone/5/false", b.Token))
		_, err := r.disks["one"].Put(r.Context(), ManifestPath("nobody", 5), strings.NewReader("late"), storage.Condition{})
		if err == nil {
			t.Error("a late owner committed what a check had removed")
		}
		later.Store(int64(tombstoneFor + time.Hour))
		check(true, fmt.Sprintf("missing/%d/false stray/0/false tombstone/5/true", b.Token))
		check(false, fmt.Sprintf("missing/%d/false stray/0/false", b.Token))
		if _, err := n.w.CheckStorage(r.Context(), "nowhere", false); err == nil {
			t.Error("an unknown storage was checked")
		}
	})
}

// A check and a rebuild ask whose the storage is now, whatever was seen before, and say what can be done when they cannot.
func TestCheckAsksForTheOwner(t *testing.T) {
	inRig(t, func(r *rig) {
		owner, err := storage.Adopt(r.Context(), r.disks["one"], storage.Adoption{Cluster: "ours"})
		r.must(err)
		guard := storage.OwnedAs(r.disks["one"], "ours", owner.Storage)
		n := r.start("n1", func(c *Config) { c.Catalog.Storages["one"] = guard }, nil)
		r.awaitState(r.backup("all").ID, ledger.Completed)
		found, err := n.w.CheckStorage(r.Context(), "one", false)
		if err != nil || len(found) > 0 {
			r.Fatalf("%+v, %v", found, err)
		}
		_, err = storage.Adopt(r.Context(), r.disks["one"], storage.Adoption{Cluster: "theirs", TakeOver: true})
		r.must(err)
		_, checked := n.w.CheckStorage(r.Context(), "one", true)
		_, rebuilt := n.w.RebuildCatalog(r.Context(), nil)
		for _, err := range []error{checked, rebuilt} {
			if !errors.Is(err, storage.ErrForeign) || !strings.Contains(err.Error(), "storage one") || !strings.Contains(hintOf(err), "storage test one") {
				r.Errorf("%v, hint %q", err, hintOf(err))
			}
		}
	})
}

// What runs is left alone: a check in the middle of a backup finds nothing, and the backup completes.
func TestCheckWhileABackupRuns(t *testing.T) {
	inRig(t, func(r *rig) {
		stopped := make(chan struct{})
		goOn := make(chan struct{})
		r.server.onWrite = func(_ context.Context, part string, _ int64) error {
			if part == source.PartDatabase {
				select {
				case <-stopped:
				default:
					close(stopped)
					<-goOn
				}
			}
			return nil
		}
		n := r.start("n1", nil, nil)
		id := r.backup("all").ID
		<-stopped
		if got := r.objects("one"); len(got) != 1 {
			t.Fatalf("in the storage: %q", got)
		}
		if list, err := n.w.CheckStorage(r.Context(), "one", true); err != nil || len(list) > 0 {
			t.Errorf("found %+v, %v", list, err)
		}
		close(goOn)
		task := r.awaitState(id, ledger.Completed)
		r.wantWhole("one", task.Token)
	})
}

// A ledger that has lost everything learns it from the storages: what is whole, trusted and the newest, with its copies.
func TestRule28_RebuildCatalog(t *testing.T) {
	inRig(t, func(r *rig) {
		n1 := signerOf("c1", "n1")
		node := r.start("n1", func(c *Config) {
			c.Signer = n1
			c.Catalog.Trust = func(_ context.Context, m Manifest) error { return Judge(m, "c1", knows(n1)) }
		}, nil)
		asOf := noon
		put := func(disk, backup string, token uint64, signed bool, sizes ...int) {
			t.Helper()
			m := goodManifest()
			m.Format, m.Backup, m.Token, m.AsOf = manifestFormat, backup, token, asOf
			if signed {
				m = n1.sign(m)
			}
			text, err := m.Encode()
			r.must(err)
			for i, size := range sizes {
				name := ObjectPath(backup, token, m.Objects[i].Name)
				r.must(discard2(r.disks[disk].Put(r.Context(), name, bytes.NewReader(make([]byte, size)), storage.Condition{})))
			}
			r.must(discard2(r.disks[disk].Put(r.Context(), ManifestPath(backup, token), bytes.NewReader(text), storage.Condition{})))
		}
		put("one", "both", 7, true, 5, 2)
		put("two", "both", 7, true, 5, 2)
		put("one", "later", 7, true, 5, 2)
		put("two", "later", 9, true, 5, 2)
		put("one", "cut", 7, true, 5, 1)
		put("one", "unsigned", 7, false, 5, 2)
		for backup, token := range map[string]uint64{"void": 7, "voided": 9} {
			_, err := entomb(r.Context(), r.disks["one"], n1.sign(Tombstone(backup, token, "test", asOf)))
			r.must(err)
		}
		known := r.awaitState(r.backup("all").ID, ledger.Completed)
		made, err := node.w.RebuildCatalog(r.Context(), nil)
		r.must(err)
		var got []string
		for _, b := range made {
			got = append(got, fmt.Sprintf("%s/%d/%d", b.ID, b.Token, len(b.Copies)))
		}
		if want := "both/7/2 later/9/1"; strings.Join(got, " ") != want {
			t.Errorf("made %q, want %q", got, want)
		}
		b, err := r.led.Backup(r.Context(), "both")
		r.must(err)
		if b.State != ledger.BackupCompleted || b.Database != "shop" || !b.AsOf.Equal(asOf) || b.Copies[0].State != ledger.CopyPresent || b.Copies[0].Bytes != 7 {
			t.Errorf("entry %+v", b)
		}
		again, err := node.w.RebuildCatalog(r.Context(), nil)
		if err != nil || len(again) > 0 {
			t.Errorf("once more: %+v, %v", again, err)
		}
		r.wantEntry(known.Backup, ledger.BackupCompleted)
	})
}

// Archived tasks lie beside the backups, and are no strays; what only looks like them is.
func TestHistoryIsNoStray(t *testing.T) {
	st := mem.New()
	put := func(name string) {
		t.Helper()
		if _, err := st.Put(t.Context(), name, strings.NewReader("{}\n"), storage.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	put(HistoryPath("t1", "t9"))
	put("history/t1-t9.jsonl.bak")
	put("histories/t1-t9.jsonl")
	inv, err := Catalog{}.inventory(t.Context(), st)
	if err != nil || !slices.Equal(inv.strays, []string{"histories/t1-t9.jsonl", "history/t1-t9.jsonl.bak"}) || len(inv.attempts) != 0 {
		t.Errorf("strays %q, %d attempts, %v", inv.strays, len(inv.attempts), err)
	}
}
