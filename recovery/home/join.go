package home

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// JoinOptions says who joins.
type JoinOptions struct {
	// ReadOnly promises that the process changes nothing that is shared: its death frees its seat and fails nobody. Default:
	// its death fails the generation.
	ReadOnly bool
	// Label is a word for people and for the warden ("node"), at most 32 bytes. Default: empty.
	Label string
	// Run is an id that the caller was given, at most 64 bytes; it is kept in the seat's record. Default: empty.
	Run string
	// Wait lets Join wait until a generation is sealed; without it Join answers ErrNotSealed.
	Wait bool
}

const lookAgain = 20 * time.Millisecond

// Join takes a seat in the generation that is open and returns when this process is inside. Errors to branch on:
// ErrNotSealed, ErrRunRecovery (also when Join itself finds that somebody died inside), ErrFull, ErrNetworkFS. It writes
// nothing but the seat's record.
func Join(ctx context.Context, cfg Config, o JoinOptions) (*Seat, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("join the environment: %w", err)
	}
	if len(o.Label) > 32 || len(o.Run) > 64 {
		return nil, errors.New("join the environment: Label has at most 32 bytes and Run 64")
	}
	for {
		s, err := joinNow(cfg, o)
		if err == nil {
			return s, nil
		}
		err = fmt.Errorf("join the environment %s: %w", cfg.Dir, err)
		again := errors.Is(err, errAgain) || o.Wait && (errors.Is(err, ErrNotSealed) || errors.Is(err, ErrRunRecovery))
		if !again {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(lookAgain):
		}
	}
}

// errAgain: the seal changed while a seat was taken.
var errAgain = errors.New("the seal changed meanwhile")

// opening is a generation that somebody is about to enter.
type opening struct {
	l    layout
	seal Seal
	page *page
}

// open finds the generation that may be opened.
func open(cfg Config) (opening, error) {
	l := layout(cfg.Dir)
	o := opening{l: l}
	seal, err := readSeal(l)
	if err != nil {
		return o, err
	}
	boot, err := bootID()
	if err != nil {
		return o, err
	}
	if err := seal.usable(boot, keeperLives(l)); err != nil {
		return o, err
	}
	if err := cfg.refuseNetwork(cfg.Dir); err != nil {
		return o, err
	}
	o.seal = seal
	o.page, err = openPage(l.page(seal.Generation))
	if errors.Is(err, os.ErrNotExist) {
		return o, fmt.Errorf("%w: generation %d was swept meanwhile", ErrNotSealed, seal.Generation)
	}
	if err != nil {
		return o, err
	}
	if cause, failed := o.page.cause(); failed {
		return o, errors.Join(&RunRecoveryError{seal.Generation, cause}, o.page.close())
	}
	return o, nil
}

func keeperLives(l layout) bool {
	if bootKnown {
		return true // not asked for
	}
	lives, err := held(l.warden())
	return err == nil && lives
}

func joinNow(cfg Config, o JoinOptions) (*Seat, error) {
	op, err := open(cfg)
	if err != nil {
		return nil, err
	}
	ident, err := Self(o.Run)
	if err != nil {
		return nil, errors.Join(err, op.page.close())
	}
	rec := Record{In: true, Generation: op.seal.Generation, ReadOnly: o.ReadOnly, Label: o.Label, Ident: ident}
	for i := range op.seal.seats(cfg) {
		lock, err := op.takeSeat(i, rec)
		if errors.Is(err, errHeld) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, op.page.close())
		}
		op.page.clearBeats(seatSlot + i)
		return newSeat(op, lock, i, rec), nil
	}
	return nil, errors.Join(fmt.Errorf("%w of %d", ErrFull, op.seal.seats(cfg)), op.page.close())
}

// seats is the number of seats of the generation.
func (s Seal) seats(cfg Config) int {
	if len(s.Locks) > 0 {
		return len(s.Locks)
	}
	return cfg.Seats
}

// takeSeat locks seat i, writes the record and only then looks at the seal again: a keeper that proves the seats empty
// either finds the lock taken, or has closed the seal before this reads it.
func (op opening) takeSeat(i int, rec Record) (*lockFile, error) {
	lock, err := tryLock(op.l.seat(i), false)
	if errors.Is(err, ErrReplaced) || errors.Is(err, os.ErrNotExist) {
		return nil, op.failed(strangerOf(op.l), fmt.Sprintf("the lock file of seat %d was replaced", i))
	}
	if err != nil {
		return nil, err
	}
	if err := op.checkSeat(lock, i); err != nil {
		return nil, errors.Join(err, lock.close())
	}
	if err := rec.write(lock.f); err != nil {
		return nil, errors.Join(err, lock.close())
	}
	again, err := readSeal(op.l)
	if err == nil && again.same(op.seal) {
		if _, failed := op.page.cause(); !failed {
			return lock, nil
		}
	}
	return nil, errors.Join(errAgain, err, Record{Generation: rec.Generation}.write(lock.f), lock.close())
}

// checkSeat looks whether the seat is what the seal says, and whether its last holder left it in order.
func (op opening) checkSeat(lock *lockFile, i int) error {
	fi, err := lock.f.Stat()
	if err != nil {
		return fmt.Errorf("look at seat %d: %w", i, err)
	}
	if want := op.seal.lockID(i); want != "" && want != fileID(fi) {
		return op.failed(ownSlot(seatSlot+i), fmt.Sprintf("the lock file of seat %d was replaced", i))
	}
	rec, err := readRecord(lock.f)
	if err != nil {
		return err
	}
	if rec.In && rec.Generation == op.seal.Generation && !rec.ReadOnly {
		return op.failed(ownSlot(seatSlot+i), fmt.Sprintf("%v died inside, in seat %d", rec, i))
	}
	return nil
}

// slotTaker gives a slot that is the caller's own while it writes a cause.
type slotTaker func() (slot int, free func() error, err error)

// ownSlot is the slot of a seat whose lock is held.
func ownSlot(slot int) slotTaker {
	return func() (int, func() error, error) { return slot, func() error { return nil }, nil }
}

// strangerOf is the slot of callers without a seat, one at a time.
func strangerOf(l layout) slotTaker {
	return func() (int, func() error, error) {
		for range 500 {
			lock, err := tryLock(l.failLock(), true)
			if err == nil {
				return strangerSlot, lock.close, nil
			}
			if !errors.Is(err, errHeld) {
				return 0, nil, err
			}
			time.Sleep(2 * time.Millisecond) // another stranger copies a line of text
		}
		return 0, nil, errors.New("mark failed: another process holds fail.lock for a second")
	}
}

// failed marks the generation failed and returns why it has: cause, unless there was one before.
func (op opening) failed(take slotTaker, cause string) error {
	slot, free, err := take()
	if err != nil {
		return err
	}
	_, err = op.page.fail(slot, cause)
	if err := errors.Join(err, free()); err != nil {
		return err
	}
	first, _ := op.page.cause()
	return &RunRecoveryError{op.seal.Generation, first}
}

// Fail marks the open generation failed for everybody, by a caller that has no seat. The first cause wins. ErrNotSealed
// when none is open.
func Fail(cfg Config, cause string) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return fmt.Errorf("fail the environment: %w", err)
	}
	op, err := open(cfg)
	if errors.Is(err, ErrRunRecovery) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("fail the environment %s: %w", cfg.Dir, err)
	}
	err = op.failed(strangerOf(op.l), cause)
	if errors.Is(err, ErrRunRecovery) {
		err = nil
	}
	return errors.Join(err, op.page.close())
}
