package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// world is a group with its index and its store, in memory: what it promises is what seams.go says, no more.
type world struct {
	mu       sync.Mutex
	changed  chan struct{} // closed at each change, and made anew
	last     uint64        // last token, run or lock id given out
	locks    map[string]lockHold
	claims   map[string]*claimHold // component/item → holder
	items    map[string]*fakeItem
	open     map[uint64]bool // runs
	groupOff bool            // nobody reaches the group
	storeOff bool
	lag      time.Duration // of the index
	recovery time.Duration // from the closing of a run to the freeing of its claims
	refuse   func(Claim, Result) error
	problems []string
	granted  []string // claims, by lock name
}

type lockHold struct{ run, id uint64 }

type claimHold struct {
	Claim
	run uint64
}

// fakeItem keeps all that was ever stored, with the time at which it was.
type fakeItem struct {
	Item
	events  []at[Event]
	records map[string][]at[Record] // by component
	begun   map[uint64]bool         // by token
	ended   map[uint64]bool
}

type at[T any] struct {
	when  time.Time
	value T
}

func newWorld() *world {
	return &world{
		changed: make(chan struct{}), locks: map[string]lockHold{}, claims: map[string]*claimHold{},
		items: map[string]*fakeItem{}, open: map[uint64]bool{}, recovery: time.Second,
	}
}

func (w *world) add(items ...Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range items {
		f := &fakeItem{Item: it, records: map[string][]at[Record]{}, begun: map[uint64]bool{}, ended: map[uint64]bool{}}
		for _, e := range it.Events {
			f.events = append(f.events, at[Event]{time.Now().Add(-time.Hour), e})
		}
		w.items[it.ID] = f
	}
}

func (w *world) change() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) id() uint64 { w.last++; return w.last }

func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// seen is an item as it was known at a time.
func (f *fakeItem) seen(component string, when time.Time) Item {
	it := f.Item
	it.Events = nil
	for _, e := range f.events {
		if !e.when.After(when) {
			it.Events = append(it.Events, e.value)
		}
	}
	it.Record = f.Item.Record
	for _, r := range f.records[component] {
		if !r.when.After(when) {
			it.Record = r.value
		}
	}
	return it
}

func (w *world) item(component, id string) Item {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.items[id].seen(component, time.Now())
}

// proc is a node's process; clients are its runners.
type proc struct {
	w      *world
	node   string
	alive  bool
	paused chan struct{} // not nil: stopped until it is closed
	run    uint64
	runCtx context.Context
	close  context.CancelCauseFunc
}

func (w *world) boot(node string) *proc {
	p := &proc{w: w, node: node, alive: true}
	w.mu.Lock()
	defer w.mu.Unlock()
	p.newRun()
	return p
}

func (p *proc) newRun() {
	p.run = p.w.id()
	p.w.open[p.run] = true
	p.runCtx, p.close = context.WithCancelCause(context.Background())
}

var errKilled = errors.New("killed")

// closeRun is what the group does when a run is dead to it: its locks are free at once, its claims after recovery.
func (w *world) closeRun(run uint64) {
	delete(w.open, run)
	for name, h := range w.locks {
		if h.run == run {
			delete(w.locks, name)
		}
	}
	w.change()
	time.AfterFunc(w.recovery, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for key, h := range w.claims {
			if h.run == run {
				delete(w.claims, key)
				w.items[h.Item].RoundTrip++
			}
		}
		w.change()
	})
}

// kill ends the process now; the group knows at once.
func (p *proc) kill() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.alive = false
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
	p.w.closeRun(p.run)
	p.close(errKilled)
}

// pause stops the process for d. The group closes its run after ttl; the process learns it when it wakes.
func (p *proc) pause(d, ttl time.Duration) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if !p.alive || p.paused != nil {
		return
	}
	p.paused = make(chan struct{})
	run, wake := p.run, p.paused
	if d > ttl {
		time.AfterFunc(ttl, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.open[run] {
				w.closeRun(run)
			}
		})
	}
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if p.paused != wake {
			return
		}
		p.paused = nil
		close(wake)
		if !w.open[run] {
			p.close(errors.New("lapsed"))
			p.newRun()
		}
	})
}

// client is what one runner sees of the world.
type client struct {
	*proc
	name    string
	polling bool
	working int
	beside  bool // its ticks go on beside each other: one polls while another works
}

// enter blocks while the process is stopped, and says whether it is dead. The world is locked when it returns nil.
func (c *client) enter() error {
	for {
		c.w.mu.Lock()
		if !c.alive {
			c.w.mu.Unlock()
			return errKilled
		}
		if c.paused == nil {
			return nil
		}
		wake := c.paused
		c.w.mu.Unlock()
		<-wake
	}
}

func (c *client) lock(ctx context.Context, name string, wait bool) (Unlock, error) {
	for {
		if err := c.enter(); err != nil {
			return nil, err
		}
		_, taken := c.w.locks[name]
		if !taken && !c.w.groupOff && c.w.open[c.run] {
			hold := lockHold{c.run, c.w.id()}
			c.w.locks[name] = hold
			c.w.mu.Unlock()
			return func(context.Context) error { return c.unlock(name, hold) }, nil
		}
		changed, off := c.w.changed, c.w.groupOff
		c.w.mu.Unlock()
		if !wait && !off {
			return nil, fmt.Errorf("%s: %w", name, ErrBusy)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (c *client) unlock(name string, hold lockHold) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.w.mu.Unlock()
	if c.w.locks[name] == hold {
		delete(c.w.locks, name)
		c.w.change()
	}
	return nil
}

func (c *client) LockPoll(ctx context.Context, component string) (Unlock, error) {
	unlock, err := c.lock(ctx, PollLock(component), true)
	if err != nil {
		return nil, err
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.working > 0 && !c.beside {
		c.w.problem("%s polls while %d pieces of its work run", c.name, c.working)
	}
	c.polling = true
	return func(ctx context.Context) error {
		c.w.mu.Lock()
		c.polling = false
		c.w.mu.Unlock()
		return unlock(ctx)
	}, nil
}

func (c *client) LockRun(ctx context.Context, component string, seat int) (Unlock, error) {
	return c.lock(ctx, RunLock(component, c.node, seat), false)
}

func (c *client) TryClaim(ctx context.Context, component, item string, roundTrip int) (Claim, error) {
	if err := c.enter(); err != nil {
		return Claim{}, err
	}
	defer c.w.mu.Unlock()
	key := component + "/" + item
	switch {
	case c.w.groupOff:
		return Claim{}, errors.New("outcome is unknown")
	case c.w.claims[key] != nil, !c.w.open[c.run]:
		return Claim{}, ErrBusy
	}
	claim := Claim{component, item, roundTrip, c.w.id()}
	c.w.claims[key] = &claimHold{claim, c.run}
	c.w.granted = append(c.w.granted, ItemLock(component, item, roundTrip))
	return claim, nil
}

func (c *client) EndClaim(ctx context.Context, claim Claim, done bool) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.w.mu.Unlock()
	if c.w.groupOff {
		return errors.New("outcome is unknown")
	}
	key := claim.Component + "/" + claim.Item
	if h := c.w.claims[key]; h != nil && h.Claim == claim && c.w.open[h.run] {
		delete(c.w.claims, key)
	}
	return nil
}

func (c *client) Standing(ctx context.Context) (context.Context, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.w.mu.Unlock()
	if c.w.groupOff {
		return nil, errors.New("lease is not held")
	}
	out, cancel := context.WithCancelCause(ctx)
	run := c.runCtx
	context.AfterFunc(run, func() { cancel(context.Cause(run)) })
	return out, nil
}

func (c *client) AwaitHeld(ctx context.Context) error {
	for {
		if err := c.enter(); err != nil {
			return err
		}
		off, changed := c.w.groupOff, c.w.changed
		c.w.mu.Unlock()
		if !off {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (c *client) AwaitUnfenced(ctx context.Context, component string) error { return ctx.Err() }

func (c *client) Query(ctx context.Context, q Query) ([]Item, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.w.mu.Unlock()
	if c.w.storeOff {
		return nil, ledger.ErrUnavailable
	}
	var out []Item
	for _, f := range c.w.items {
		it := f.seen(q.Component, time.Now().Add(-c.w.lag))
		if ok, _ := MatchAny(q.Triggers, it); ok {
			out = append(out, it)
		}
	}
	out = Order(out, q.At)
	return out[:min(len(out), cmp.Or(q.Limit, len(out)))], nil
}

// guard answers whether a write under the claim takes effect.
func (c *client) guard(claim Claim) error {
	h := c.w.claims[claim.Component+"/"+claim.Item]
	if h == nil || h.Claim != claim || !c.w.open[h.run] {
		return ledger.ErrFenced
	}
	return nil
}

func (c *client) Begin(ctx context.Context, claim Claim, when time.Time) (Item, error) {
	if err := c.enter(); err != nil {
		return Item{}, err
	}
	defer c.w.mu.Unlock()
	if err := c.guard(claim); err != nil {
		return Item{}, err
	}
	f := c.w.items[claim.Item]
	it := f.seen(claim.Component, time.Now())
	if !f.begun[claim.Token] {
		f.begun[claim.Token] = true
		it.Record.Attempts++
		it.Record.LastAttempt = when
		f.records[claim.Component] = append(f.records[claim.Component], at[Record]{time.Now(), it.Record})
	}
	if c.w.storeOff { // it had its effect, and nobody was told
		return Item{}, ledger.ErrUnavailable
	}
	return it, nil
}

func (c *client) Finish(ctx context.Context, claim Claim, r Result) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.w.mu.Unlock()
	if err := c.guard(claim); err != nil {
		return err
	}
	if c.w.refuse != nil {
		if err := c.w.refuse(claim, r); err != nil {
			return err
		}
	}
	f := c.w.items[claim.Item]
	if !f.ended[claim.Token] {
		f.ended[claim.Token] = true
		f.events = append(f.events, at[Event]{time.Now(), r.Event})
		f.records[claim.Component] = append(f.records[claim.Component], at[Record]{time.Now(), r.Record})
	}
	if c.w.storeOff {
		return ledger.ErrUnavailable
	}
	return nil
}

// watched wraps work so that the world knows when it runs.
func (c *client) watched(f Func) Func {
	return func(ctx context.Context, j Job) (Report, error) {
		c.w.mu.Lock()
		if c.polling && !c.beside {
			c.w.problem("%s works on %s under its poll lock", c.name, j.Item.ID)
		}
		c.working++
		c.w.mu.Unlock()
		defer func() {
			c.w.mu.Lock()
			c.working--
			c.w.mu.Unlock()
		}()
		return f(ctx, j)
	}
}

// config is a runner's configuration in this world.
func (p *proc) config(component string, work Func) (Config, *client) {
	c := &client{proc: p, name: component + "@" + p.node}
	return Config{
		Component: component, Node: p.node, Trigger: Trigger{Future: []string{component}},
		Worker: c.watched(work), Locks: c, Claims: c, Gate: c, Index: c, Store: c,
	}, c
}

// events are the details of an item's events of a type, "ok" for a success without any.
func (w *world) events(item, eventType string) []string {
	var out []string
	for _, e := range w.item("", item).Events {
		if e.Type == eventType {
			details := e.Details
			if e.Success {
				details = cmp.Or(details, "ok")
			}
			out = append(out, details)
		}
	}
	return out
}

func (w *world) claimed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for key := range w.claims {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.change()
}

func numbered(n int) []Item {
	out := make([]Item, n)
	for i := range out {
		out[i] = Item{Type: "batch", ID: fmt.Sprintf("i%03d", i), RoundTrip: 1,
			Record: Record{Created: time.Date(1999, 1, 1, 0, i, 0, 0, time.UTC)}}
	}
	return out
}
