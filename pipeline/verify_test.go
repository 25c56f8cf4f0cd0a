package pipeline

import (
	"context"
	"errors"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage/storagetest"
)

// verified backs up, harms, and verifies both copies.
func verified(t *testing.T, harm func(r *rig, b ledger.Task), fs faults, want map[string]string) {
	t.Helper()
	inRig(t, func(r *rig) {
		b := r.filled()
		if harm != nil {
			harm(r, b)
		}
		n := r.node("verifier", nil, fs)
		v, err := Verify(r.Context(), n.w.cfg.Catalog, VerifyRequest{Backup: b.Backup})
		states := map[string]string{}
		for _, c := range v.Copies {
			states[c.Storage] = c.State
			if (c.Err == nil) != (c.State == CopyPresent) {
				r.Errorf("%s is %s: %v", c.Storage, c.State, c.Err)
			}
		}
		for name, state := range want {
			if states[name] != state {
				r.Errorf("%s is %s, want %s: %+v", name, states[name], state, v.Copies)
			}
		}
		whole := want["one"] == CopyPresent || want["two"] == CopyPresent
		if errors.Is(err, ErrNoCopy) == whole || v.Good() != (want["one"] == CopyPresent && want["two"] == CopyPresent) {
			r.Errorf("error %v, good %v", err, v.Good())
		}
	})
}

func TestVerify(t *testing.T) {
	gone := func(part string) func(r *rig, b ledger.Task) {
		return func(r *rig, b ledger.Task) {
			r.must(r.disks["one"].Delete(r.Context(), ObjectPath(b.Backup, b.Token, part)))
		}
	}
	for name, c := range map[string]struct {
		harm     func(r *rig, b ledger.Task)
		fs       faults
		one, two string
	}{
		"good":          {one: CopyPresent, two: CopyPresent},
		"flipped":       {harm: func(r *rig, b ledger.Task) { r.rewrite(b, source.PartData, flip) }, one: CopyCorrupt, two: CopyPresent},
		"longer":        {harm: func(r *rig, b ledger.Task) { r.rewrite(b, source.PartData, longer) }, one: CopyCorrupt, two: CopyPresent},
		"last part":     {harm: func(r *rig, b ledger.Task) { r.rewrite(b, source.PartDatabase, flip) }, one: CopyCorrupt, two: CopyPresent},
		"object gone":   {harm: gone(source.PartData), one: CopyMissing, two: CopyPresent},
		"manifest gone": {harm: gone(manifestName), one: CopyMissing, two: CopyPresent},
		"away":          {fs: faults{"one": {storagetest.Fail(storagetest.Get, errBoom)}}, one: CopyUnknown, two: CopyPresent},
		"cut":           {fs: faults{"one": {storagetest.Cut(50_000).On("/data")}}, one: CopyCorrupt, two: CopyPresent},
		"both": {harm: func(r *rig, b ledger.Task) { r.rewrite(b, source.PartData, flip) }, fs: faults{"two": {storagetest.Fail(storagetest.Get, errBoom)}},
			one: CopyCorrupt, two: CopyUnknown},
	} {
		t.Run(name, func(t *testing.T) { verified(t, c.harm, c.fs, map[string]string{"one": c.one, "two": c.two}) })
	}
}

// A backup is restored into the scratch server and nothing stays of it; one that is a source is refused untouched.
func TestVerifyInScratch(t *testing.T) {
	inRig(t, func(r *rig) {
		r.server.identity = "source"
		b := r.filled()
		n := r.node("verifier", nil, nil)
		scratch := newServer()
		ask := VerifyRequest{Backup: b.Backup, Scratch: scratch, Attempt: source.Attempt{Task: "t", Token: 9}}

		for _, identity := range []string{"", "source"} {
			scratch.identity = identity
			if v, err := Verify(r.Context(), n.w.cfg.Catalog, ask); !errors.Is(err, ErrScratchIsSource) || v.Restored || len(scratch.settled) != 0 {
				r.Errorf("scratch %q: %v", identity, err)
			}
		}
		scratch.identity = "scratch"
		v, err := Verify(r.Context(), n.w.cfg.Catalog, ask)
		if err != nil || !v.Restored || !v.Good() {
			r.Errorf("verified %+v, %v", v, err)
		}
		if names := scratch.names(); len(names) != 1 || scratch.commits != 0 || len(scratch.restored) != 2 {
			r.Errorf("left %v, restored %v", names, scratch.restored)
		}
	})
}

func TestVerifyIsCancelled(t *testing.T) {
	inRig(t, func(r *rig) {
		b := r.filled()
		n := r.node("verifier", nil, nil)
		ctx, cancel := context.WithCancelCause(r.Context())
		_, err := Verify(ctx, n.w.cfg.Catalog, VerifyRequest{Backup: b.Backup, Count: func(int) { cancel(errBoom) }})
		if !errors.Is(err, errBoom) {
			r.Errorf("error %v", err)
		}
	})
}
