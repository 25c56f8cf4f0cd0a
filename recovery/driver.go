package recovery

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// driver is the manager's one goroutine: it compares the log's list with the jobs and starts, ends and forgets them.
// Only it touches jobs and backoff.
type driver struct {
	m       *Manager
	jobs    map[key]*job
	running int // deliveries whose end has not been received
	ended   chan ended
	backoff *backoff
}

// ended says what a delivery came to.
type ended struct {
	job     *job
	verdict verdict
}

func newDriver(m *Manager) *driver {
	return &driver{
		m: m, jobs: make(map[key]*job), ended: make(chan ended),
		backoff: newBackoff(m.opts.MinBackoff, m.opts.MaxBackoff),
	}
}

// drive works from the state, not from events: whatever was missed, the next look makes up for it.
func (d *driver) drive(ctx context.Context) {
	for ctx.Err() == nil {
		list, changed := d.m.opts.Log.Recoveries()
		d.backoff.rounds(list, time.Now())
		p := decide(time.Now(), list, d.slots(), d.backoff.notBefore)
		d.carryOut(ctx, p)
		d.await(ctx, changed, p.wake)
	}
	for d.running > 0 {
		d.settle(<-d.ended)
	}
	for _, j := range d.jobs {
		j.close()
	}
}

func (d *driver) slots() map[key]slot {
	slots := make(map[key]slot, len(d.jobs))
	for k, j := range d.jobs {
		slots[k] = j.slot()
	}
	return slots
}

func (d *driver) carryOut(ctx context.Context, p plan) {
	for _, k := range p.move {
		if d.jobs[k].handOver() {
			d.m.log.Warn("recovery action has not acquired its fence, and the appointment has moved on",
				"recovery", k.component, "node", d.jobs[k].ref.Node, "run", k.run, "index", d.jobs[k].ref.Index)
		}
	}
	for _, k := range p.forget {
		d.forget(k)
	}
	for _, a := range p.start {
		d.start(ctx, a)
	}
}

func (d *driver) forget(k key) {
	d.jobs[k].close()
	delete(d.jobs, k)
}

// start delivers a, under the job that it has already when it was delivered before.
func (d *driver) start(ctx context.Context, a Appointed) {
	k := a.key()
	component, _ := d.m.opts.Router.Component(a.Component)
	j := d.jobs[k]
	if j != nil && j.ref.Index != a.Index {
		d.forget(k)
		j = nil
	}
	if j == nil {
		j = newJob(a.Ref, component)
		d.jobs[k] = j
	}
	d.running++
	d.deliver(ctx, a, j, component)
}

// deliver runs the action and reports its end, on goroutines of their own.
func (d *driver) deliver(ctx context.Context, a Appointed, j *job, c signals.Component) {
	moved, move := context.WithCancelCause(ctx)
	live, lose := context.WithCancelCause(moved)
	j.begin(move, lose)
	d.m.wg.Go(func() {
		defer move(nil)
		defer lose(nil)
		d.ended <- ended{j, d.m.run(moved, newDelivery(live, d.m, a, j, c))}
	})
}

// await waits for anything that may change the next decision.
func (d *driver) await(ctx context.Context, changed <-chan struct{}, wake time.Time) {
	var timeout <-chan time.Time
	if !wake.IsZero() {
		timer := time.NewTimer(time.Until(wake))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-changed:
	case <-d.m.pokes:
	case <-timeout:
	case e := <-d.ended:
		d.settle(e)
	case <-ctx.Done():
	}
}

// settle books the end of a delivery.
func (d *driver) settle(e ended) {
	d.running--
	k := e.job.ref.key()
	switch e.verdict {
	case verdictFailed:
		e.job.end(phaseResting)
		pause := d.backoff.failed(k, time.Now())
		d.m.log.Info("recovery action rests", "recovery", k.component, "run", k.run, "pause", pause)
		return
	case verdictDone:
		d.backoff.succeeded(k)
	case verdictVoid:
	}
	e.job.end(phaseSpent)
	e.job.close()
}
