package home

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Keeper is the one who may end a generation and begin the next: it holds the warden lock. It is for one goroutine at a
// time, except Fail.
type Keeper struct {
	cfg  Config
	l    layout
	lock *lockFile

	mu sync.Mutex // guards op
	op *opening   // the open generation; nil when none is
}

// Take takes the warden lock. ErrBusy when another process has it, and then no byte was changed; ErrNetworkFS. It does not
// wait. An open generation of an earlier keeper stays as it is: see Adoptable.
func Take(cfg Config) (*Keeper, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("keep the environment: %w", err)
	}
	fail := func(err error) (*Keeper, error) { return nil, fmt.Errorf("keep the environment %s: %w", cfg.Dir, err) }
	if err := cfg.refuseNetwork(existing(cfg.Dir)); err != nil {
		return fail(err)
	}
	l := layout(cfg.Dir)
	if err := os.MkdirAll(l.seats(), 0o700); err != nil {
		return fail(err)
	}
	lock, err := tryLock(l.warden(), true)
	if errors.Is(err, errHeld) {
		err = ErrBusy
	}
	if err != nil {
		return fail(err)
	}
	k := &Keeper{cfg: cfg, l: l, lock: lock}
	if err := k.resume(); err != nil {
		return fail(errors.Join(err, k.Close()))
	}
	return k, nil
}

// resume opens the page of a generation that an earlier keeper left open.
func (k *Keeper) resume() error {
	op, err := open(k.cfg)
	switch {
	case errors.Is(err, ErrNotSealed) || errors.Is(err, ErrRunRecovery):
		return nil
	case err != nil:
		return err
	}
	if bootKnown {
		k.op = &op
		return nil
	}
	seal := op.seal // nobody can say whether it is from before the machine was started
	seal.Open = false
	return errors.Join(seal.write(k.l), op.page.close())
}

// Close gives the warden lock up and leaves the environment as it is: processes inside go on, and the next keeper finds
// them. For an orderly end see Retire. Its errors are those of the files.
func (k *Keeper) Close() error { return errors.Join(k.forget(), k.lock.close()) }

func (k *Keeper) forget() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.op == nil {
		return nil
	}
	err := k.op.page.close()
	k.op = nil
	return err
}

// Fail marks the open generation failed: who is inside sees it at once. The first cause wins. ErrNotSealed when none is
// open. It does not block.
func (k *Keeper) Fail(cause string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.op == nil {
		return ErrNotSealed
	}
	if err := k.op.failed(ownSlot(keeperSlot), cause); !errors.Is(err, ErrRunRecovery) {
		return err
	}
	return nil
}

// Check is nil while a generation is open and good, ErrRunRecovery when it has failed, ErrNotSealed when none is open.
func (k *Keeper) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.op == nil {
		return ErrNotSealed
	}
	return k.op.check()
}

// Failchk probes every seat. A reader that died is freed. A writer that died, a lock that outlived its holder and a lock file
// that was replaced fail the generation for everybody, and the error is ErrRunRecovery. Call it after a process died and now
// and then.
func (k *Keeper) Failchk() ([]Finding, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.op == nil {
		return nil, ErrNotSealed
	}
	return k.op.failchk(-1)
}

// Occupants are those inside the open generation, by their records, with what can be said of them. Errors: ErrReplaced, or a
// seat that cannot be read.
func (k *Keeper) Occupants() ([]Occupant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.op == nil {
		return nil, ErrNotSealed
	}
	return k.op.occupants()
}

// Occupant looks at one seat of the open generation, which may be free: it costs what one of many seats does in Occupants. The
// error is ErrNotSealed when none is open; else there is no such seat, or it could not be read.
func (k *Keeper) Occupant(seat int) (Occupant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.op == nil {
		return Occupant{}, ErrNotSealed
	}
	if seat < 0 || seat >= len(k.op.seal.Locks) {
		return Occupant{}, fmt.Errorf("look at seat %d: there are %d", seat, len(k.op.seal.Locks))
	}
	o, _, err := k.op.occupant(seat)
	return o, err
}

// Generation is the open one, 0 when none is.
func (k *Keeper) Generation() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.op == nil {
		return 0
	}
	return k.op.seal.Generation
}

// Volatile is the directory that those in the open generation share; empty when none is open.
func (k *Keeper) Volatile() string {
	if gen := k.Generation(); gen > 0 {
		return k.l.volatile(gen)
	}
	return ""
}

// Recover does all in order: mark failed, prove that nobody is inside, clean, sweep, seal. It returns the new generation.
// Errors to branch on: ErrNotProven, ErrNeedsOperator, and what a Clean step said; then nothing is sealed and it can be
// called again.
func (k *Keeper) Recover(ctx context.Context, cause string) (uint64, error) {
	if err := k.Fail(cause); err != nil && !errors.Is(err, ErrNotSealed) {
		return 0, err
	}
	d, err := k.Drain(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Release()
	return d.Seal(ctx)
}

// Retire ends the open generation in order: everybody has left, and the next keeper has nothing to recover from. It kills
// nobody: ErrNotProven when somebody is inside and stays there.
func (k *Keeper) Retire(ctx context.Context) error {
	d, err := k.drain(ctx, true)
	if err != nil {
		return err
	}
	d.Release()
	return nil
}

// Pardon lets recovery be tried again after ErrNeedsOperator.
func (k *Keeper) Pardon() error {
	seal, err := readSeal(k.l)
	if err != nil || seal.Attempts == 0 {
		return err
	}
	seal.Attempts = 0
	return seal.write(k.l)
}

// existing is dir, or the nearest directory above it that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
		up := parent(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}
