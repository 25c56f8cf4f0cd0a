package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Occupant is one seat that is or was taken.
type Occupant struct {
	Seat     int      `json:"seat"`     // its number, from 0
	Held     bool     `json:"held"`     // somebody has its lock
	Record   Record   `json:"record"`   // what its last holder wrote
	Liveness Liveness `json:"liveness"` // of the process in the record
	Beats    uint64   `json:"beats"`    // 0: it does not report progress
}

// Status is an environment as it looks from outside.
type Status struct {
	Seal   Seal       `json:"seal"`   // which generation may be opened
	Usable string     `json:"usable"` // empty: may be opened; else why not
	Failed string     `json:"failed"` // the first cause; empty while the generation is good
	Kept   bool       `json:"kept"`   // somebody holds the warden lock
	Seats  []Occupant `json:"seats"`  // taken ones, and those that are not in order
}

// Look reads the state of an environment. On Linux it takes no lock and changes nothing; elsewhere it takes locks for a
// moment to see whether they are free. The answer may be old when it arrives. Errors: there is no environment in cfg.Dir, or
// it cannot be read.
func Look(cfg Config) (Status, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Status{}, err
	}
	fail := func(err error) (Status, error) {
		return Status{}, fmt.Errorf("look at the environment %s: %w", cfg.Dir, err)
	}
	l := layout(cfg.Dir)
	var st Status
	if st.Seal, err = readSeal(l); err != nil {
		return fail(err)
	}
	if st.Kept, err = held(l.warden()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	op, err := open(cfg)
	var failed *RunRecoveryError
	switch {
	case err == nil:
		defer op.page.close()
		st.Seats, err = op.occupants()
	case errors.As(err, &failed):
		st.Usable, st.Failed = ErrRunRecovery.Error(), failed.Cause
		st.Seats, err = opening{l: l, seal: st.Seal}.occupants()
	case errors.Is(err, ErrNotSealed) || errors.Is(err, ErrNetworkFS):
		st.Usable = err.Error()
		st.Seats, err = opening{l: l, seal: st.Seal}.occupants()
	}
	if err != nil {
		return fail(err)
	}
	return st, nil
}

// occupants looks at all seats; those that are free and in order are left out. It works without a page.
func (op opening) occupants() ([]Occupant, error) {
	out := []Occupant{}
	for i := range op.seal.Locks {
		o, taken, err := op.occupant(i)
		if err != nil {
			return out, err
		}
		if taken {
			out = append(out, o)
		}
	}
	return out, nil
}

// occupant looks at one seat; taken is false when it is free and in order.
func (op opening) occupant(i int) (o Occupant, taken bool, err error) {
	o = Occupant{Seat: i, Liveness: Unknown}
	if o.Held, err = held(op.l.seat(i)); err != nil {
		return o, false, fmt.Errorf("look at seat %d: %w", i, err)
	}
	if o.Record, err = readRecordAt(op.l.seat(i)); err != nil {
		return o, false, err
	}
	current := o.Record.In && o.Record.Generation == op.seal.Generation
	parted := o.Record.Parting != "" && o.Record.Generation == op.seal.Generation
	if current {
		o.Liveness = o.Record.Ident.Liveness()
	}
	if op.page != nil {
		o.Beats = op.page.beats(seatSlot + i)
	}
	return o, o.Held || current || parted, nil
}

// Audit says, one line each, what is not as it should be in an environment. It changes nothing. No line means that it may
// be opened and everybody inside is alive. Errors: as Look.
func Audit(cfg Config) ([]string, error) {
	st, err := Look(cfg)
	if err != nil {
		return nil, err
	}
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if st.Usable != "" {
		bad("%s", st.Usable)
	}
	if st.Failed != "" {
		bad("generation %d has failed: %s", st.Seal.Generation, st.Failed)
	}
	if !st.Kept {
		bad("nobody keeps it: no process holds the warden lock")
	}
	l := layout(cfg.Dir)
	for i, id := range st.Seal.Locks {
		if fi, err := os.Stat(l.seat(i)); err != nil || id != fileID(fi) {
			bad("the lock file of seat %d was replaced", i)
		}
	}
	for _, o := range st.Seats {
		switch {
		case o.Record.In && !o.Held:
			bad("%v died inside, in seat %d", o.Record, o.Seat)
		case o.Record.In && o.Liveness == Dead:
			bad("%v is dead, and another process holds its seat %d", o.Record, o.Seat)
		}
	}
	return out, nil
}

// Kept says whether a process holds the warden lock of the environment in dir. On Linux it takes no lock. An error is a lock
// that cannot be looked at.
func Kept(dir string) (bool, error) { return held(layout(dir).warden()) }

// VolatileDir is where the processes of a generation share what they may lose; it is gone when the next one is sealed.
func VolatileDir(dir string, generation uint64) string { return layout(dir).volatile(generation) }
