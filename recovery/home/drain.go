package home

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func parent(dir string) string { return filepath.Dir(dir) }

// Drained is the proof that nobody is inside: the locks of all seats, held. While it is held nobody can enter.
type Drained struct {
	k     *Keeper
	seal  Seal // of the generation that ended
	spare bool // nobody is killed
	locks []*lockFile
}

// Drain closes the seal and proves that nobody is inside by holding the lock of every seat. It waits Config.DrainFor for the
// seats to be left, then kills (by pidfd, never a process that only has the number) who holds one, and waits KillFor. A
// process that is stopped is inside. ErrNotProven says who is left, and then the seal stays closed; ErrNeedsOperator when
// this was begun too often.
func (k *Keeper) Drain(ctx context.Context) (*Drained, error) { return k.drain(ctx, false) }

func (k *Keeper) drain(ctx context.Context, retire bool) (*Drained, error) {
	fail := func(err error) (*Drained, error) {
		return nil, fmt.Errorf("drain the environment %s: %w", k.cfg.Dir, err)
	}
	if err := k.lock.intact(); err != nil {
		return fail(err)
	}
	seal, err := readSeal(k.l)
	if err != nil {
		return fail(err)
	}
	if err := k.shut(&seal, retire && !errors.Is(k.Check(), ErrRunRecovery)); err != nil {
		return fail(err)
	}
	d := &Drained{k: k, seal: seal, spare: retire || k.cfg.Spare}
	if err := d.takeAll(ctx); err != nil {
		d.Release()
		return fail(err)
	}
	return d, k.forget()
}

// shut closes the seal, keeps the evidence and counts the attempt.
func (k *Keeper) shut(seal *Seal, retire bool) error {
	if seal.Open && !retire {
		seal.Cause = k.causeOf(*seal)
		if err := k.keepEvidence(*seal, nil); err != nil {
			return err
		}
	}
	if !retire {
		if seal.Attempts >= k.cfg.MaxAttempts {
			return fmt.Errorf("%w: begun %d times since generation %d", ErrNeedsOperator, seal.Attempts, seal.Generation)
		}
		seal.Attempts++
	}
	seal.Open = false
	return seal.write(k.l)
}

// causeOf is why a generation ends that is still open in its seal.
func (k *Keeper) causeOf(seal Seal) string {
	if boot, err := bootID(); err == nil && boot != seal.Boot {
		return "the machine was started anew"
	}
	p, err := openPage(k.l.page(seal.Generation))
	if err != nil {
		return "unknown: " + err.Error()
	}
	defer p.close()
	if cause, failed := p.cause(); failed {
		return cause
	}
	cause := "it was open when its keeper came"
	_, _ = p.fail(keeperSlot, cause) // who is inside must not go on
	return cause
}

// takeAll takes the locks of all seats there are or were.
func (d *Drained) takeAll(ctx context.Context) error {
	paths, err := d.k.seatPaths(max(d.k.cfg.Seats, len(d.seal.Locks)))
	if err != nil {
		return err
	}
	start := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	killed := map[int]bool{}
	for {
		var inside []string
		paths, inside, err = d.take(paths)
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			inside = d.replaced()
		}
		if len(inside) == 0 {
			slices.SortFunc(d.locks, func(a, b *lockFile) int { return strings.Compare(a.path, b.path) })
			return nil
		}
		waited := time.Since(start)
		if waited > d.k.cfg.DrainFor && !d.spare {
			d.kill(paths, killed)
		}
		if waited > d.k.cfg.DrainFor+d.k.cfg.KillFor {
			return fmt.Errorf("%w: %s", ErrNotProven, strings.Join(inside, "; "))
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), fmt.Errorf("%w: %s", ErrNotProven, strings.Join(inside, "; ")))
		case <-tick.C:
		}
	}
}

// take locks what is free of paths, and returns the rest with a line for each.
func (d *Drained) take(paths []string) (rest, inside []string, err error) {
	for _, path := range paths {
		lock, err := tryLock(path, true)
		switch {
		case errors.Is(err, errHeld):
			rec, _ := readRecordAt(path)
			rest = append(rest, path)
			inside = append(inside, fmt.Sprintf("seat %s is held by %v", filepath.Base(path), rec))
		case errors.Is(err, ErrReplaced):
			rest = append(rest, path)
			inside = append(inside, err.Error())
		case err != nil:
			return nil, nil, err
		default:
			d.locks = append(d.locks, lock)
		}
	}
	return rest, inside, nil
}

// seatPaths are the files of n seats and of those that earlier generations had.
func (k *Keeper) seatPaths(n int) ([]string, error) {
	var paths []string
	for i := range n {
		paths = append(paths, k.l.seat(i))
	}
	entries, err := os.ReadDir(k.l.seats())
	if err != nil {
		return nil, fmt.Errorf("list seats: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(k.l.seats(), e.Name())
		var i int
		if _, err := fmt.Sscanf(e.Name(), "%d", &i); err == nil && i >= n && path == k.l.seat(i) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// Release gives the seats up. After Seal it is done already.
func (d *Drained) Release() {
	for _, l := range d.locks {
		_ = l.close() // nothing was written that could be lost
	}
	d.locks = nil
}

// Seal cleans, sweeps and seals the next generation, which it returns. After an error nothing is open, and Seal or Drain can
// be called again.
func (d *Drained) Seal(ctx context.Context) (uint64, error) {
	k := d.k
	fail := func(err error) (uint64, error) { return 0, fmt.Errorf("seal the environment %s: %w", k.cfg.Dir, err) }
	if d.locks == nil {
		return fail(ErrNotProven)
	}
	for _, step := range k.cfg.Clean {
		c := Cleaning{Dir: k.cfg.Dir, Generation: d.seal.Generation, Cause: d.seal.Cause}
		if err := step.Run(ctx, c); err != nil {
			return fail(fmt.Errorf("clean: %s: %w", step.Name, err))
		}
	}
	if err := d.Sweep(); err != nil {
		return fail(err)
	}
	next, err := d.prepare()
	if err != nil {
		return fail(err)
	}
	d.Release()
	if err := next.write(k.l); err != nil {
		return fail(err)
	}
	op, err := open(k.cfg)
	if err != nil {
		return fail(err)
	}
	k.mu.Lock()
	k.op = &op
	k.mu.Unlock()
	return next.Generation, nil
}

// prepare makes all that the next generation needs, and its seal, which is not written yet.
func (d *Drained) prepare() (Seal, error) {
	k, gen := d.k, d.seal.Generation+1
	boot, err := bootID()
	if err != nil {
		return Seal{}, err
	}
	next := Seal{Generation: gen, Open: true, Boot: boot}
	if err := createPage(k.l.page(gen), gen, k.cfg.Seats); err != nil {
		return next, fmt.Errorf("make a page: %w", err)
	}
	if err := os.MkdirAll(k.l.volatile(gen), 0o700); err != nil {
		return next, NoRoom(err)
	}
	for i := range k.cfg.Seats {
		fi, err := d.locks[i].f.Stat()
		if err == nil && d.locks[i].path != k.l.seat(i) {
			err = fmt.Errorf("seat %d is out of order", i)
		}
		if err == nil {
			err = Record{Generation: d.seal.Generation}.write(d.locks[i].f)
		}
		if err == nil {
			err = d.locks[i].intact()
		}
		if err != nil {
			return next, fmt.Errorf("prepare a seat: %w", err)
		}
		next.Locks = append(next.Locks, fileID(fi))
	}
	return next, k.lock.intact()
}
