package gms

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// lockLimit is how long a poll lock may be held (PROTOCOL.md 21).
const lockLimit = 30 * time.Second

// Lock is a poll lock that this run holds. It ends by itself 30 s after it was granted, and with the run.
type Lock struct {
	Name  string // as given to TryLock or WaitLock
	Token uint64 // larger than that of every earlier holder
	held  *heldLock
}

// Context ends with the hold, and its cause says how: ErrStale when the lock's limit has passed, ErrRunClosed with the run,
// context.Canceled by Unlock. What is done under the lock is done under it; a fence is refused there (ErrOrder).
func (l Lock) Context() context.Context { return l.held.ctx }

// underLock is the key under which a lock's context has its name.
type underLock struct{}

// FenceAllowed refuses with ErrOrder when ctx is a poll lock's: a fence comes before the lock, never the reverse
// (PROTOCOL.md 21), else two that wait for each other wait for ever. What waits for a fence asks it first.
func FenceAllowed(ctx context.Context) error {
	if name, under := ctx.Value(underLock{}).(string); under {
		return fmt.Errorf("%w: poll lock %s is held", ErrOrder, name)
	}
	return nil
}

// heldLock is the holder's side of a lock. The context is kept because a Lock is one call's answer.
type heldLock struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	run    state.RunID
	since  uint64 // a position at which it was held
	done   func() // gives the turn on; may be called twice
}

// turns line up the callers of this process, first come first served: the log knows one holder or waiter per run and name.
type turns struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	turn  chan struct{} // capacity 1; those who wait are served in order
	users int
}

func newTurns() *turns { return &turns{lines: make(map[string]*line)} }

// take waits for the turn; done gives it on.
func (t *turns) take(ctx context.Context, name string) (done func(), err error) {
	l := t.join(name)
	select {
	case l.turn <- struct{}{}:
		return sync.OnceFunc(func() { <-l.turn; t.leave(name, l) }), nil
	case <-ctx.Done():
		t.leave(name, l)
		return nil, context.Cause(ctx)
	}
}

// try takes the turn if nobody has it.
func (t *turns) try(name string) (done func(), ok bool) {
	l := t.join(name)
	select {
	case l.turn <- struct{}{}:
		return sync.OnceFunc(func() { <-l.turn; t.leave(name, l) }), true
	default:
		t.leave(name, l)
		return nil, false
	}
}

func (t *turns) join(name string) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[name]
	if l == nil {
		l = &line{turn: make(chan struct{}, 1)}
		t.lines[name] = l
	}
	l.users++
	return l
}

func (t *turns) leave(name string, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(t.lines, name)
	}
}

// TryLock takes a poll lock (`/SBOI/<component>`) when it is free, else ErrBusy (as *HolderError). Otherwise as Claim. The
// order is fence, then poll lock, then claims: who holds a lock waits for no fence (ErrOrder).
func (g *Group) TryLock(ctx context.Context, name string) (Lock, error) {
	if err := g.mayStart(); err != nil {
		return Lock{}, fmt.Errorf("lock %s: %w", name, err)
	}
	done, ok := g.turns.try(name)
	if !ok {
		run := g.ownRun()
		return Lock{}, fmt.Errorf("lock %s: %w", name, g.holderError(run.Bytes()))
	}
	return g.lock(ctx, name, false, done)
}

// WaitLock takes a poll lock, and waits for it while another holds it: first come first served, by the log's order between
// nodes and by the order of the calls within one. It blocks until the lock is granted, ctx ends or the run does
// (ErrRunClosed). A wait that is given up, or that ends without the outcome known, is undone in the background: nothing is
// held that nobody knows of. ErrStale: it was granted, and its limit had passed before this node learned of it.
func (g *Group) WaitLock(ctx context.Context, name string) (Lock, error) {
	if err := g.mayStart(); err != nil {
		return Lock{}, fmt.Errorf("wait for lock %s: %w", name, err)
	}
	done, err := g.turns.take(ctx, name)
	if err != nil {
		return Lock{}, fmt.Errorf("wait for lock %s: %w", name, err)
	}
	return g.lock(ctx, name, true, done)
}

func (g *Group) lock(ctx context.Context, name string, wait bool, done func()) (Lock, error) {
	what := "lock " + name
	s := g.standingNow()
	if s == nil {
		done()
		return Lock{}, fmt.Errorf("%s: %w", what, ErrNoQuorum)
	}
	begun := g.cfg.Clock.Now()
	r, err := g.settled(ctx, s.run, &wire.Command{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: name, Wait: wait}}}, func(ctx context.Context, r *wire.Result) {
		defer done()
		if r != nil && g.errorOf(what, r) == nil {
			g.giveBack(ctx, s.run, name, r.GetToken())
		}
	})
	if err != nil {
		return Lock{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := g.errorOf(what, r); err != nil {
		done()
		return Lock{}, err
	}
	token, since := r.GetToken(), r.GetPosition()
	if r.GetCode() == wire.Code_CODE_QUEUED {
		if token, since, err = g.awaitGrant(ctx, s, name, since); err == nil {
			err = g.mayStart() // who was cut off learns of a grant that may be over
		}
		if err != nil {
			g.background(func(ctx context.Context) {
				defer done()
				g.giveBack(ctx, s.run, name, 0)
			})
			return Lock{}, fmt.Errorf("wait for lock %s: %w", name, err)
		}
		begun = g.cfg.Clock.Now()
	}
	return g.holdLock(s, Lock{Name: name, Token: token}, since, begun, done), nil
}

// settled gets a command of a run decided. When ctx ends first, it goes on in the background until the outcome is known, and
// then calls late, with nil when it will never be.
func (g *Group) settled(ctx context.Context, run state.RunID, cmd *wire.Command, late func(context.Context, *wire.Result)) (*wire.Result, error) {
	cmd.Run = run.Bytes()
	if err := g.commands.begin(cmd); err != nil {
		late(ctx, nil)
		return nil, err
	}
	r, err := g.commands.repeat(ctx, cmd)
	if err == nil {
		g.commands.end(cmd.GetSeq())
		return r, nil
	}
	g.background(func(ctx context.Context) {
		defer g.commands.end(cmd.GetSeq())
		r, err := g.commands.repeat(ctx, cmd)
		if err != nil {
			r = nil
		}
		late(ctx, r)
	})
	return nil, err
}

// awaitGrant waits in the queue, in which the run is since a position.
func (g *Group) awaitGrant(ctx context.Context, s *standing, name string, since uint64) (token, position uint64, err error) {
	for {
		queued := true
		changed := g.rep.watch(func(m *state.Machine) {
			position = m.Position()
			if position < since {
				return
			}
			l, _ := m.Lock(name)
			if string(l.GetRun()) == string(s.run[:]) {
				token = l.GetToken()
			}
			queued = waitsFor(l, s.run)
		})
		switch {
		case token > 0:
			return token, position, nil
		case s.ctx.Err() != nil:
			return 0, 0, context.Cause(s.ctx)
		case !queued:
			return 0, 0, fmt.Errorf("%w: it was granted and has ended meanwhile", ErrStale)
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
}

func waitsFor(l *wire.LockState, run state.RunID) bool {
	for _, w := range l.GetWaiters() {
		if string(w) == string(run[:]) {
			return true
		}
	}
	return false
}

// giveBack frees a lock that nobody waits for any more, or gives up the wait for it (token 0), whose answer says whether
// it was granted meanwhile (PROTOCOL.md 21).
func (g *Group) giveBack(ctx context.Context, run state.RunID, name string, token uint64) {
	for {
		cmd := unlock(name, token)
		cmd.Run = run.Bytes()
		r, err := g.commands.do(ctx, cmd)
		if err != nil || r.GetCode() != wire.Code_CODE_OK || token > 0 || r.GetToken() == 0 {
			return
		}
		token = r.GetToken()
	}
}

// holdLock watches over a granted lock until it ends.
func (g *Group) holdLock(s *standing, l Lock, since uint64, begun time.Duration, done func()) Lock {
	ctx, cancel := context.WithCancelCause(context.WithValue(s.ctx, underLock{}, l.Name))
	l.held = &heldLock{ctx: ctx, cancel: cancel, run: s.run, since: since, done: done}
	limit := begun + lockLimit - leaseMargin(lockLimit) - g.cfg.Clock.Now()
	g.background(func(ctx context.Context) { g.watchLock(ctx, l, limit) })
	return l
}

// watchLock ends the lock's context when the log has ended the hold, or at the local limit, whichever comes first. Only the
// log's word gives the turn on.
func (g *Group) watchLock(ctx context.Context, l Lock, limit time.Duration) {
	h := l.held
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		held, open := true, true
		changed := g.rep.watch(func(m *state.Machine) {
			if m.Position() >= h.since {
				now, _ := m.Lock(l.Name)
				held, open = now.GetToken() == l.Token, m.IsOpen(h.run)
			}
		})
		if !held {
			h.cancel(endOfLock(l.Name, open))
			h.done()
			return
		}
		select {
		case <-changed:
		case <-over.C:
			h.cancel(endOfLock(l.Name, true))
		case <-ctx.Done():
			h.cancel(ErrStopped)
			h.done()
			return
		}
	}
}

func endOfLock(name string, open bool) error {
	if !open {
		return ErrRunClosed
	}
	return fmt.Errorf("%w: the limit of lock %s has passed", ErrStale, name)
}

// Unlock frees a poll lock: ErrNotHolder when it has ended before, which is also ErrStale when its limit had passed;
// ErrRunClosed when it ended with its run. When ctx ends first, unlocking goes on in the background.
func (g *Group) Unlock(ctx context.Context, l Lock) error {
	what := "unlock " + l.Name
	if l.held == nil {
		return fmt.Errorf("%s: %w", what, ErrNotHolder)
	}
	stale := context.Cause(l.held.ctx)
	if stale == nil {
		l.held.cancel(context.Canceled)
	}
	r, err := g.settled(ctx, l.held.run, unlock(l.Name, l.Token), func(context.Context, *wire.Result) { l.held.done() })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	l.held.done()
	if r.GetCode() == wire.Code_CODE_NOT_HOLDER && stale != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrNotHolder, stale)
	}
	return g.errorOf(what, r)
}

func unlock(name string, token uint64) *wire.Command {
	return &wire.Command{Op: &wire.Command_Unlock{Unlock: &wire.Unlock{Name: name, Token: token}}}
}
