package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Evidence is what is kept of a generation that failed. It is written once: what goes wrong during the recovery does not
// cover up what went wrong first.
type Evidence struct {
	Generation uint64            `json:"generation"`      // that failed
	Cause      string            `json:"cause"`           // the first that anybody gave
	At         time.Time         `json:"at"`              // for people
	Boot       string            `json:"boot"`            // id of the start of the machine in which it failed
	Seats      []Record          `json:"seats"`           // of those that were inside, as far as their records say
	Notes      map[string]string `json:"notes,omitempty"` // what the keeper knew
}

// KeepEvidence writes the evidence of the open generation, which has failed, with notes of the caller. When there is some
// already nothing happens. Drain does the same without notes.
func (k *Keeper) KeepEvidence(notes map[string]string) error {
	seal, err := readSeal(k.l)
	if err != nil {
		return fmt.Errorf("keep the evidence: %w", err)
	}
	if !seal.Open {
		return ErrNotSealed
	}
	seal.Cause = k.causeOf(seal)
	return k.keepEvidence(seal, notes)
}

func (k *Keeper) keepEvidence(seal Seal, notes map[string]string) error {
	e := Evidence{Generation: seal.Generation, Cause: seal.Cause, At: time.Now().UTC().Round(time.Millisecond), Boot: seal.Boot, Seats: []Record{}, Notes: notes}
	paths, err := k.seatPaths(len(seal.Locks))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if rec, err := readRecordAt(path); err == nil && rec.In && rec.Generation == seal.Generation {
			e.Seats = append(e.Seats, rec)
		}
	}
	path := filepath.Join(k.l.evidence(), genName(e.Generation)+".json")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	data, err := json.MarshalIndent(e, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.l.evidence(), 0o700); err != nil {
		return fmt.Errorf("keep the evidence: %w", NoRoom(err))
	}
	if err := writeFile(path, append(data, '\n')); err != nil {
		return fmt.Errorf("keep the evidence: %w", err)
	}
	return k.forgetOldEvidence()
}

func (k *Keeper) forgetOldEvidence() error {
	names, err := evidenceFiles(k.l)
	if err != nil {
		return err
	}
	var errs []error
	for len(names) > k.cfg.KeepEvidence {
		errs = append(errs, os.Remove(names[0]))
		names = names[1:]
	}
	return errors.Join(errs...)
}

// evidenceFiles are sorted, the oldest first.
func evidenceFiles(l layout) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(l.evidence(), "*.json"))
	slices.Sort(names)
	return names, err
}

// ReadEvidence is all that is kept, the newest first. It needs no lock. None is no error; one that cannot be read is.
func ReadEvidence(cfg Config) ([]Evidence, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	names, err := evidenceFiles(layout(cfg.Dir))
	if err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	var out []Evidence
	for _, name := range slices.Backward(names) {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // forgotten meanwhile
		}
		var e Evidence
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		if err != nil {
			return out, fmt.Errorf("read the evidence %s: %w", filepath.Base(name), err)
		}
		out = append(out, e)
	}
	return out, nil
}
