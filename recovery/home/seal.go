package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Seal says which generation may be opened. It is replaced as a whole, and says Open only after cleaning has ended.
type Seal struct {
	Format     int       `json:"format"`          // of this file; this build knows 1
	Generation uint64    `json:"generation"`      // of the environment that is or was last open; counted from 1
	Open       bool      `json:"open"`            // processes may enter
	Boot       string    `json:"boot"`            // a seal from before the machine was started anew is stale
	Attempts   int       `json:"attempts"`        // recoveries begun since the last one that ended
	Cause      string    `json:"cause,omitempty"` // why it is not open; empty while it is, and after an orderly end
	At         time.Time `json:"at"`              // for people; nothing is decided by it
	Locks      []string  `json:"locks,omitempty"` // which files the seats' locks are
}

const sealFormat = 1

// readSeal is the seal of dir; the zero Seal when there was never one.
func readSeal(l layout) (Seal, error) {
	data, err := os.ReadFile(l.seal())
	if errors.Is(err, fs.ErrNotExist) {
		return Seal{}, nil
	}
	if err != nil {
		return Seal{}, fmt.Errorf("read the seal: %w", err)
	}
	var s Seal
	if err := json.Unmarshal(data, &s); err != nil {
		return Seal{}, fmt.Errorf("read the seal: %w", err)
	}
	if s.Format != sealFormat {
		return Seal{}, fmt.Errorf("read the seal: format %d, this build knows %d", s.Format, sealFormat)
	}
	return s, nil
}

func (s Seal) write(l layout) error {
	s.Format = sealFormat
	s.At = time.Now().UTC().Round(time.Millisecond)
	data, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	if err := writeFile(l.seal(), append(data, '\n')); err != nil {
		return fmt.Errorf("write the seal: %w", err)
	}
	return nil
}

// usable says whether the generation may be opened by a process of this start of the machine.
func (s Seal) usable(boot string, keeperLives bool) error {
	switch {
	case s.Generation == 0:
		return fmt.Errorf("%w: it was never made", ErrNotSealed)
	case !s.Open:
		return fmt.Errorf("%w: generation %d has ended and the next is not ready", ErrNotSealed, s.Generation)
	case s.Boot != boot:
		return fmt.Errorf("%w: the seal of generation %d is from before the machine was started", ErrNotSealed, s.Generation)
	case !bootKnown && !keeperLives:
		return fmt.Errorf("%w: generation %d has no keeper", ErrNotSealed, s.Generation)
	}
	return nil
}

// same says whether o opens the same generation.
func (s Seal) same(o Seal) bool {
	return s.Open && o.Open && s.Generation == o.Generation && s.Boot == o.Boot
}

func (s Seal) lockID(i int) string {
	if i < len(s.Locks) {
		return s.Locks[i]
	}
	return ""
}
