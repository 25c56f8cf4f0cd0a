package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// Without ledger and worker: what was backed up is listed and restored by its manifest alone, or not at all.
func TestRestoreDirect(t *testing.T) {
	inRig(t, func(r *rig) {
		node := r.start("n1", nil, nil)
		b := r.awaitState(r.backup("all").ID, ledger.Completed)
		cat := Catalog{Storages: map[string]storage.Storage{"one": r.disks["one"]}, Processors: node.w.cfg.Catalog.Processors}
		list, findings, err := Shelved(r.Context(), cat, nil)
		if err != nil || len(list) != 1 || list[0].ID != b.Backup || list[0].Token != b.Token || len(findings) > 0 {
			t.Fatalf("%+v, %+v, %v", list, findings, err)
		}
		restore := func(c Catalog, target string) error {
			_, err := RestoreDirect(r.Context(), c, DirectRestore{Backup: b.Backup, Into: r.server, Attempt: source.Attempt{Task: "direct", Token: 99},
				Options: source.RestoreOptions{Target: target}})
			return err
		}
		r.must(restore(cat, "copy"))
		if got, ok := r.server.get("copy"); !ok || !bytes.Equal(got.data, patternOf(700_000)) {
			t.Errorf("copy has %d bytes", len(got.data))
		}
		for task, token := range map[string]uint64{"direct": 98, "another": 97} { // were killed
			_, err := r.server.Restore(r.Context(), source.Attempt{Task: task, Token: token}, source.RestoreOptions{Target: "killed"})
			r.must(err)
		}
		r.must(restore(cat, "copy2"))
		if _, ok := r.server.get("killed__fp_98"); ok {
			t.Error("what a killed restore has left is still there")
		}
		if _, ok := r.server.get("killed__fp_97"); !ok {
			t.Error("what another restore is filling was dropped")
		}
		before := len(r.server.names())
		cut := cat
		cut.Storages = map[string]storage.Storage{"one": storagetest.Inject(r.disks["one"], storagetest.Cut(1000).On("/data"))}
		if err := restore(cut, "never"); err == nil {
			t.Error("a cut object was restored")
		}
		foreign := cat
		foreign.Trust = func(_ context.Context, m Manifest) error { return Judge(m, "c1", knows()) }
		if err := restore(foreign, "never"); !errors.Is(err, ErrForeign) {
			t.Errorf("foreign: %v", err)
		}
		if list, findings, err := Shelved(r.Context(), foreign, nil); err != nil || len(list) > 0 || kinds(findings) == "" || findings[0].Kind != FoundForeign || findings[0].Fixable {
			t.Errorf("foreign: %+v, %+v, %v", list, findings, err)
		}
		if n := len(r.server.names()); n != before {
			t.Errorf("databases %q", r.server.names())
		}
	})
}

// A part alone is read as whole as a restore reads it, and what is not there is said, with the reason.
func TestReadPart(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		n := r.node("n2", nil, nil)
		var got bytes.Buffer
		r.must(ReadPart(r.Context(), n.w.cfg.Catalog, b.Backup, source.PartData, &got))
		if !bytes.Equal(got.Bytes(), patternOf(700_000)) {
			r.Errorf("%d bytes", got.Len())
		}
		if err := ReadPart(r.Context(), n.w.cfg.Catalog, b.Backup, source.PartGlobals, io.Discard); !errors.Is(err, ledger.ErrNotFound) || !strings.Contains(err.Error(), "has no globals.sql") {
			r.Errorf("a part that is not there: %v", err)
		}
		for _, disk := range []string{"one", "two"} {
			name := ObjectPath(b.Backup, b.Token, source.PartData)
			obj, _, err := r.disks[disk].Get(r.Context(), name)
			r.must(err)
			stored, err := io.ReadAll(obj)
			r.must(errors.Join(err, obj.Close()))
			stored[len(stored)/2] ^= 1
			r.must(r.disks[disk].Delete(r.Context(), name))
			r.must(discard2(r.disks[disk].Put(r.Context(), name, bytes.NewReader(stored), storage.Condition{})))
		}
		if err := ReadPart(r.Context(), n.w.cfg.Catalog, b.Backup, source.PartData, io.Discard); !damaged(err) {
			r.Errorf("a damaged part: %v", err)
		}
	})
}
