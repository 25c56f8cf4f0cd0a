package home

import (
	"errors"
	"fmt"
)

// Finding is one thing that Failchk saw.
type Finding struct {
	Seat   int    `json:"seat"`   // its number, from 0
	Record Record `json:"record"` // of whoever had it
	What   What   `json:"what"`   // became of it
}

// What Failchk saw of a seat.
type What string

// Findings. All but Freed fail the generation, for everybody.
const (
	Freed     What = "freed"     // a reader died; its seat can be taken again
	Died      What = "died"      // a writer died inside
	Inherited What = "inherited" // the holder is dead, and a process that got its descriptor holds the lock
	Replaced  What = "replaced"  // the seat's file is another one than when the generation was sealed
)

// failchk probes all seats but the caller's own. The error is ErrRunRecovery when the generation has failed, by this or
// before.
func (op opening) failchk(own int) ([]Finding, error) {
	if err := op.check(); err != nil {
		return nil, err
	}
	var found []Finding
	var errs []error
	for i := range op.seal.Locks {
		if i == own {
			continue
		}
		f, ok, err := op.probe(i)
		if err != nil {
			errs = append(errs, fmt.Errorf("probe seat %d: %w", i, err))
		}
		if !ok {
			continue
		}
		found = append(found, f)
		if f.What != Freed {
			cause := fmt.Sprintf("%v: %s inside, in seat %d", f.Record, f.What, i)
			errs = append(errs, op.failed(op.finderSlot(own), cause))
		}
	}
	return found, errors.Join(errs...)
}

// finderSlot is where a finding's cause is written: the finder's own slot. own is -1 for the keeper.
func (op opening) finderSlot(own int) slotTaker {
	if own < 0 {
		return ownSlot(keeperSlot)
	}
	return ownSlot(seatSlot + own)
}

// probe looks at one seat; ok says that there is something to tell.
func (op opening) probe(i int) (f Finding, ok bool, err error) {
	path := op.l.seat(i)
	f.Seat = i
	lock, err := tryLock(path, false)
	if errors.Is(err, errHeld) {
		f.Record, f.What = Record{}, Inherited
		ok, err = op.inherited(path, &f.Record)
		return f, ok, err
	}
	if errors.Is(err, ErrReplaced) {
		f.What = Replaced
		return f, true, nil
	}
	if err != nil {
		return f, false, err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	fi, err := lock.f.Stat()
	if err != nil {
		return f, false, err
	}
	if want := op.seal.lockID(i); want != fileID(fi) {
		f.What = Replaced
		return f, true, nil
	}
	if f.Record, err = readRecord(lock.f); err != nil || !f.Record.In || f.Record.Generation != op.seal.Generation {
		return f, false, err
	}
	if f.Record.ReadOnly {
		f.What = Freed
		return f, true, Record{Generation: op.seal.Generation}.write(lock.f)
	}
	f.What = Died
	return f, true, nil
}

// inherited says whether a held lock's holder is dead. A reader's is left alone: it only costs a seat. The record is read
// again after the look at the process, since the seat may have passed to another one in between.
func (op opening) inherited(path string, rec *Record) (bool, error) {
	before, err := readRecordAt(path)
	if err != nil || !before.In || before.ReadOnly || before.Ident.Liveness() != Dead {
		return false, err
	}
	stillHeld, err := held(path)
	if err != nil || !stillHeld {
		return false, err
	}
	after, err := readRecordAt(path)
	*rec = after
	return after == before, err
}
