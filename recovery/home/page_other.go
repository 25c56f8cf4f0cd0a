//go:build !linux

package home

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// page is the page of a generation as a plain file. The winner is a second file, whose creation is the first cause.
type page struct {
	f    *os.File
	path string
}

const lookEvery = 50 * time.Millisecond

func createPage(path string, gen uint64, seats int) error {
	b := make([]byte, pageSize(seats))
	copy(b, pageMagic)
	binary.BigEndian.PutUint64(b[genAt:], gen)
	return writeFile(path, b)
}

func openPage(path string) (*page, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open page: %w", err)
	}
	return &page{f: f, path: path}, nil
}

func (p *page) close() error { return p.f.Close() }

func (p *page) winner() string { return p.path + ".failed" }

// fail makes cause the first, unless there is one; it says whether it did.
func (p *page) fail(slot int, cause string) (bool, error) {
	tmp := fmt.Sprintf("%s.%d", p.path, slot)
	if err := os.WriteFile(tmp, []byte(tidyCause(cause)), 0o600); err != nil {
		return false, fmt.Errorf("mark failed: %w", err)
	}
	defer os.Remove(tmp)
	err := os.Link(tmp, p.winner())
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("mark failed: %w", err)
	}
	return true, nil
}

// cause is the first cause, if the generation has failed. A page that was swept belongs to a generation that ended.
func (p *page) cause() (string, bool) {
	text, err := os.ReadFile(p.winner())
	if err == nil {
		return string(text), true
	}
	if _, err := os.Stat(p.path); errors.Is(err, fs.ErrNotExist) {
		return "the generation was swept", true
	}
	return "", false
}

func (p *page) beats(slot int) uint64 {
	var b [8]byte
	if _, err := p.f.ReadAt(b[:], int64(slotAt(slot))); err != nil {
		return 0
	}
	return binary.BigEndian.Uint64(b[:])
}

func (p *page) beat(slot int)       { p.setBeats(slot, p.beats(slot)+1) }
func (p *page) clearBeats(slot int) { p.setBeats(slot, 0) }

func (p *page) setBeats(slot int, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	_, _ = p.f.WriteAt(b[:], int64(slotAt(slot))) // a lost beat is made up for by the next
}

// wait returns after a while: this system has no way to be woken by another process's write.
func (p *page) wait(d time.Duration) { time.Sleep(min(d, lookEvery)) }

func (p *page) wake() {}
