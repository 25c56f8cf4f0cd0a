package gmstest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/recovery/warden"
)

// wardenKilled: that the warden dies changes no view and ends no work. A node that dies while it has none is found by its
// silence, as one without a warden is.
func wardenKilled(x *scene) {
	x.begin(0, 2)
	x.lives(10 * time.Second)
	x.kill(x.victim) // and nobody says so
	x.finished()
	x.by(x.recoverer())
	x.closedAs(wire.Evidence_EVIDENCE_LAPSED)
}

// wardenReplaced: the next warden has adopted the living node, with its run and its key, and buries it when it dies.
func wardenReplaced(x *scene) {
	x.begin(0, 2)
	x.lives(10 * time.Second) // by then every home remembers where the others are
	by := x.w.Others(x.victim)[0]
	x.kill(x.victim)
	if err := x.announce(by, x.obituary(warden.Died, x.victim, x.victim, x.victim)); err != nil {
		x.t.Errorf("its obituary: %v", err)
	}
	x.finished()
	x.by(x.recoverer())
	x.closedAs(wire.Evidence_EVIDENCE_OBITUARY)
}

// nodeOrphaned: no warden comes, and the node stops itself in order; what it was at work on is recovered like any other's.
func nodeOrphaned(x *scene) {
	x.begin(0, 2)
	x.died(x.victim)
	x.w.Stop(x.victim)
	x.finished()
	x.by(x.recoverer())
	x.closedAs(wire.Evidence_EVIDENCE_LEFT)
}

// secondWarden: what another warden starts on the home of a living node is refused and changes no byte; the first goes on.
func secondWarden(x *scene) {
	x.begin(0)
	n := x.w.Node(x.victim)
	before := bytesBelow(x, n.site.home)
	cfg := x.w.config(n)
	cfg.Router, cfg.Seam = nil, nil
	second, err := gms.New(cfg)
	must(x.t, err)
	if err := second.Start(x.t.Context()); !errors.Is(err, gms.ErrHomeInUse) {
		x.t.Errorf("a second node on the home: %v", err)
	}
	must(x.t, second.Stop(context.Background()))
	if after := bytesBelow(x, n.site.home); after != before {
		x.t.Error("the second one has changed the home")
	}
	x.lives(10 * time.Second)
	x.kill(x.victim)
	x.finished()
	x.by(x.recoverer())
}

// lives holds that the victim goes on as the run that it is, that no view changes, and that nothing is recovered, for d.
func (x *scene) lives(d time.Duration) {
	x.t.Helper()
	n := x.w.Node(x.victim)
	run, view := n.Run(), n.Group.View().Version
	Advance(d)
	if !n.Standing() || n.Run() != run || n.Group.View().Version != view || len(x.w.observer.closings) > 0 {
		x.t.Errorf("run %s became %s, view %d became %d; closed: %v", run, n.Run(), view, n.Group.View().Version, x.w.observer.closings)
	}
	for _, e := range x.app.all() {
		if e.recovery {
			x.t.Errorf("recovered while it lives: %+v", e)
		}
	}
}

// closedAs holds that the victim's one run was closed on that evidence.
func (x *scene) closedAs(want wire.Evidence) {
	x.t.Helper()
	for _, c := range x.w.observer.closed(x.victim) {
		if c.Evidence != want {
			x.t.Errorf("closed as %v, want %v", evidences[c.Evidence], evidences[want])
		}
	}
	if n := len(x.w.observer.closed(x.victim)); n != 1 {
		x.t.Errorf("%d runs of it were closed", n)
	}
}

// bytesBelow is what the files of a folder hold.
func bytesBelow(x *scene, dir string) (all string) {
	x.t.Helper()
	must(x.t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all += path + "\x00" + string(data) + "\x00"
		return err
	}))
	return all
}
