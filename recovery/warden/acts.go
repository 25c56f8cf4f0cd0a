package warden

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/recovery/home"
)

// do carries one act out. What may take long goes on beside the loop, one at a time, and ends in an event.
func (w *Warden) do(a act) {
	switch a := a.(type) {
	case recoverA:
		go func() { w.events <- recovered{w.recover(a.cause)} }()
	case adoptA:
		w.watch = w.newWatch()
		w.cfg.Logger.Info("warden: adopted the node of an earlier warden", "pid", w.node.ident.PID, "run", w.run.text())
	case startA:
		w.events <- started{w.start()}
	case pauseA:
		w.cfg.Logger.Info("warden: waits before it starts the node again", "pause", a.d.String())
		w.pause = time.After(a.d)
	case readyA:
		w.upAt = time.Now()
		w.tellSupervisor("READY=1", "STATUS=the node is up")
	case failA:
		if !w.m.final || !w.m.exit.byItself() {
			w.cfg.Logger.Error("warden: "+a.cause, "pid", w.node.ident.PID, "run", w.run.text())
		}
		if err := w.keeper.Fail(a.cause); !errors.Is(err, home.ErrNotSealed) {
			w.warn("mark the home failed", err)
		}
		w.tellSupervisor("STATUS=" + a.cause)
	case tellA:
		w.announce(a.what)
	case keepA:
		w.keep(a.exit)
	case buryA:
		left := w.left()
		go func() { w.events <- buried{w.bury(left)} }()
	case retireA:
		w.tellSupervisor("STOPPING=1")
		left := w.left()
		go func() { w.events <- retired{w.retire(left)} }()
	case dumpA:
		w.cfg.Logger.Error("warden: the node makes no progress, it is asked for its stacks and ended", "silent", w.watch.silent.String())
		w.limitNode(w.cfg.Policy.DumpFor, w.node.quit())
	case termA:
		w.tellSupervisor("STOPPING=1")
		w.limitNode(w.cfg.Policy.StopFor, w.node.term())
	case killA:
		w.warn("kill the node", w.node.kill())
	case roomA:
		w.cfg.Logger.Error("warden: the disk of the home is full: it goes on when there is room", "home", w.cfg.Home.Dir, "error", a.err)
		w.tellSupervisor("STATUS=the disk of the home is full")
		w.room = time.After(roomEvery)
	}
}

// roomEvery is how often a warden looks whether there is room on a disk that was full.
const roomEvery = time.Second

// lookForRoom goes on when there is room, or when nobody can say.
func (w *Warden) lookForRoom() {
	if errors.Is(home.HasRoom(w.cfg.Home.Dir), home.ErrNoRoom) {
		w.room = time.After(roomEvery)
		return
	}
	w.cfg.Logger.Info("warden: there is room on the disk of the home again", "home", w.cfg.Home.Dir)
	w.step(roomy{})
}

func (w *Warden) limitNode(d time.Duration, err error) {
	w.warn("signal the node", err)
	w.limit = time.After(d)
}

func (w *Warden) newWatch() progress {
	return progress{first: w.cfg.Policy.StartFor, limit: w.cfg.Policy.HangAfter, every: lookEvery, looked: time.Since(w.since)}
}

// start starts the node of a new run.
func (w *Warden) start() error {
	r, err := newRun(w.keeper.Generation())
	if err != nil {
		return err
	}
	if err := r.save(w.keeper.Volatile()); err != nil {
		return err
	}
	p, err := w.starter.start(w.cfg, r)
	if err != nil {
		return err
	}
	w.run, w.node, w.seat, w.watch = r, p, -1, w.newWatch()
	w.cfg.Logger.Debug("warden: started the node", "pid", p.ident.PID, "run", r.text(), "generation", r.Generation)
	return nil
}

// recover seals the next generation, with the proof at hand or one of its own.
func (w *Warden) recover(cause string) error {
	ctx := context.Background() // an orderly stop waits for its end, which the home's own limits bound
	if w.drained == nil {
		if err := w.keeper.Fail(cause); err != nil && !errors.Is(err, home.ErrNotSealed) {
			return err
		}
		if err := w.buryFormer(ctx); err != nil {
			return errors.Join(home.ErrNotProven, err)
		}
		_, err := w.keeper.Recover(ctx, cause)
		return err
	}
	d := w.drained
	w.drained = nil
	defer d.Release()
	_, err := d.Seal(ctx)
	return err
}

// buryFormer kills what is left of the last run of an earlier warden.
func (w *Warden) buryFormer(ctx context.Context) error {
	st, err := home.Look(w.cfg.Home)
	if err != nil || st.Seal.Generation == 0 {
		return err
	}
	r, err := loadRun(home.VolatileDir(w.cfg.Home.Dir, st.Seal.Generation), st.Seal.Generation)
	if err != nil {
		return nil // it was never started
	}
	left := remains{run: r.text(), node: -1, sole: w.cfg.Sole}
	for _, o := range st.Seats {
		if o.Record.Ident.Run == left.run && o.Record.Label == nodeLabel && o.Liveness == home.Alive {
			left.node, left.since = o.Record.Ident.PID, o.Record.Ident.Start
		}
	}
	return w.endAll(ctx, left)
}

// bury kills what is left of the run and proves that nobody is inside.
func (w *Warden) bury(left remains) error {
	ctx := context.Background()
	if err := w.endAll(ctx, left); err != nil {
		return errors.Join(home.ErrNotProven, err)
	}
	d, err := w.keeper.Drain(ctx)
	w.drained = d
	return err
}

func (w *Warden) retire(left remains) error {
	ctx := context.Background()
	if err := w.endAll(ctx, left); err != nil {
		return errors.Join(home.ErrNotProven, err)
	}
	return w.keeper.Retire(ctx)
}

const endAllFor = 20 * time.Second

func (w *Warden) endAll(ctx context.Context, left remains) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endAllFor, errors.New("they do not die"))
	defer cancel()
	n, err := left.endAll(ctx)
	if n > 0 {
		w.cfg.Logger.Info("warden: killed what was left of the run", "processes", n)
	}
	return err
}

func (w *Warden) announce(what What) {
	if w.cfg.Announcer == nil || what == Quiesced && !findsRemains {
		return
	}
	if what == Died { // the volatile part goes before the second obituary
		var err error
		w.stood, err = loadStands(w.keeper.Volatile(), w.run.ID)
		w.warn("the obituary speaks of the node's first run", err)
	}
	signed, err := Obituary{What: what, Run: w.stood, Generation: w.run.Generation, Node: w.cfg.Node}.Sign(w.run.key)
	if err != nil {
		w.warn("write an obituary", err)
		return
	}
	w.mail.post(letter{what, hex.EncodeToString(w.stood[:]), signed, w.m.final && w.m.exit.byItself()})
}

func (w *Warden) keep(exit Exit) {
	notes := map[string]string{"exit": exit.String(), "pid": fmt.Sprint(w.node.ident.PID), "run": w.run.text(), "node": w.cfg.Node}
	if !w.upAt.IsZero() {
		notes["up"] = time.Since(w.upAt).Round(time.Millisecond).String()
	}
	w.upAt = time.Time{}
	if err := w.keeper.KeepEvidence(notes); !errors.Is(err, home.ErrNotSealed) {
		w.warn("keep the evidence", err)
	}
}

func (w *Warden) tellSupervisor(lines ...string) { w.warn("notify", w.cfg.Supervisor.tell(lines...)) }

// signsOfLife ticks twice as often as the supervisor demands.
func (w *Warden) signsOfLife() *time.Ticker {
	if d := w.cfg.Supervisor.Watchdog; d > 0 {
		return time.NewTicker(max(d/2, time.Millisecond))
	}
	t := time.NewTicker(time.Hour)
	t.Stop()
	return t
}
