package warden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/fencepost/fencepost/recovery/home"
)

// Warden watches one node. Run does everything, once.
type Warden struct {
	cfg    Config
	m      machine
	keeper *home.Keeper
	since  time.Time // the zero of the machine's clock

	starter *starter
	mail    *mail
	stop    chan struct{} // ends what watches an adopted node
	events  chan event    // of work that goes on beside the loop; room for one

	run     run
	stood   [16]byte // the run of its group, as which the node stood when it died
	node    *process
	seat    int // the node's, -1 while it is not known
	drained *home.Drained
	watch   progress
	limit   <-chan time.Time // of dumpA, termA
	pause   <-chan time.Time
	room    <-chan time.Time // when it is looked for room
	upAt    time.Time
}

// New checks the configuration. It opens nothing. Its error names the field that is wrong.
func New(cfg Config) (*Warden, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Warden{cfg: cfg, m: machine{policy: cfg.Policy, state: idle}, seat: -1, stop: make(chan struct{}), events: make(chan event, 1)}, nil
}

// Run takes the warden lock, adopts a living node or cleans up after the last generation and starts one, and watches until
// the node has stopped as planned, ctx ends (which stops the node in order), or no restart is left. Before it returns the
// node and everything below it has ended, except after Outcome.Code 5. When another warden is there, it changes nothing and
// the error is home.ErrBusy.
func (w *Warden) Run(ctx context.Context) Outcome {
	keeper, err := home.Take(w.cfg.Home)
	if err != nil {
		return Outcome{Code: 1, Err: err}
	}
	w.keeper, w.since = keeper, time.Now()
	if w.cfg.Sole {
		if err := inherit(); err != nil {
			return Outcome{Code: 1, Err: errors.Join(err, keeper.Close())}
		}
	}
	w.starter, w.mail = newStarter(), newMail(w.cfg)
	defer func() {
		close(w.stop)
		w.mail.close()
		w.starter.close()
		if w.drained != nil {
			w.drained.Release()
		}
		_ = keeper.Close() // nothing was written that could be lost
	}()
	w.loop(ctx)
	return w.m.outcome
}

// loop is the only goroutine that steps the machine.
func (w *Warden) loop(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	alive := w.signsOfLife()
	defer alive.Stop()
	w.step(begun{adoptable: w.adoptable()})
	asked := ctx.Done()
	for w.m.state != finished {
		select {
		case e := <-w.events:
			w.step(e)
		case exit := <-w.ending():
			w.onExit(exit)
		case <-w.pause:
			w.pause = nil
			w.step(paused{})
		case <-w.room:
			w.room = nil
			w.lookForRoom()
		case <-w.limit:
			w.limit = nil
			w.step(late{})
		case <-look.C:
			w.look()
		case <-alive.C:
			w.tellSupervisor("WATCHDOG=1")
		case sig := <-w.cfg.Signals:
			w.onSignal(sig)
		case sig := <-w.cfg.Forward:
			w.forward(sig)
		case <-asked:
			asked = nil
			w.step(stopAsked{})
		}
	}
}

const lookEvery = 100 * time.Millisecond

// ending gives the node's end; nobody ends while there is no node.
func (w *Warden) ending() <-chan Exit {
	if w.node == nil {
		return nil
	}
	return w.node.done
}

func (w *Warden) onExit(exit Exit) {
	w.node.cut()
	if o, ok := w.nodeSeat(); ok && !o.Record.In {
		exit.Parting = Parting(o.Record.Parting)
	}
	w.limit = nil
	w.step(ended{exit})
	w.node = nil
}

// onSignal passes a signal on. The node is asked by that signal instead of by ours.
func (w *Warden) onSignal(sig os.Signal) {
	if w.node != nil && w.m.stopping {
		w.warn("pass a signal on", w.node.send(sig))
		return
	}
	w.step(stopAsked{})
}

// forward passes a signal on to a node that is up: one that is just starting would die of it.
func (w *Warden) forward(sig os.Signal) {
	if w.node != nil && w.m.state == running && w.m.up {
		w.warn("pass a signal on", w.node.send(sig))
		return
	}
	w.cfg.Logger.Info("warden: a signal was not passed on, there is no node that is up", "signal", sig.String())
}

func (w *Warden) look() {
	if w.node == nil || w.m.state != running {
		return
	}
	if w.cfg.Sole {
		w.left().reap()
	}
	var beats uint64
	if o, ok := w.nodeSeat(); ok && o.Record.In {
		beats = o.Beats
	}
	if beats > 0 {
		w.step(cameUp{})
	}
	if w.watch.look(time.Since(w.since), beats) {
		w.step(hung{})
	}
}

// nodeSeat is the seat of the run's node; false when it has, or had, none. All seats are looked at only until it is found.
func (w *Warden) nodeSeat() (home.Occupant, bool) {
	own := func(o home.Occupant) bool { return o.Record.Label == nodeLabel && o.Record.Ident.Run == w.run.text() }
	if w.seat >= 0 {
		if o, err := w.keeper.Occupant(w.seat); err == nil && own(o) {
			return o, true
		}
	}
	occ, _ := w.keeper.Occupants() // in vain: it is as if there were none
	if i := slices.IndexFunc(occ, own); i >= 0 {
		w.seat = occ[i].Seat
		return occ[i], true
	}
	return home.Occupant{}, false
}

func (w *Warden) left() remains {
	r := remains{run: w.run.text(), sole: w.cfg.Sole, node: -1}
	if w.node != nil {
		r.node, r.since = w.node.ident.PID, w.node.ident.Start
	}
	return r
}

// adoptable says whether a node of an earlier warden lives in an open, good generation, and takes its run over.
func (w *Warden) adoptable() bool {
	if w.keeper.Check() != nil {
		return false
	}
	r, err := loadRun(w.keeper.Volatile(), w.keeper.Generation())
	if err != nil {
		return false
	}
	occ, err := w.keeper.Occupants()
	if err != nil {
		return false
	}
	for _, o := range occ {
		if o.Held && o.Record.In && o.Record.Label == nodeLabel && o.Record.Ident.Run == r.text() && o.Liveness == home.Alive {
			if w.node, err = adopt(o.Record.Ident, w.stop); err == nil {
				w.run = r
				return true
			}
			w.warn("adopt", err)
		}
	}
	return false
}

// step lets the machine decide and does what it says.
func (w *Warden) step(e event) {
	before := w.m.state
	acts := w.m.step(time.Since(w.since), e)
	if w.m.state != before && !w.m.final { // a node that ends for good has said why: nothing is said after it
		w.cfg.Logger.Debug("warden: "+string(w.m.state), "was", string(before), "event", fmt.Sprintf("%T", e))
	}
	for _, a := range acts {
		w.do(a)
	}
}

func (w *Warden) warn(what string, err error) {
	if err != nil {
		w.cfg.Logger.Warn("warden: "+what, "error", err)
	}
}
