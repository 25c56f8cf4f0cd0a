package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// roomNeeded is more than a generation takes: its seal, page, evidence, and what is kept of a run.
const roomNeeded = 1 << 20

// HasRoom tries whether a keeper could begin a generation in dir as far as its disk goes: nil, ErrNoRoom, or why it cannot be
// tried. It writes a file of a mebibyte and removes it.
func HasRoom(dir string) error {
	path := filepath.Join(dir, "room.new")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return NoRoom(err)
	}
	_, err = f.Write(make([]byte, roomNeeded))
	if err == nil {
		err = f.Sync() // some file systems find out only now
	}
	return NoRoom(errors.Join(err, f.Close(), os.Remove(path)))
}

// NoRoom makes an error of a disk without room, or without room for this user, an ErrNoRoom, and leaves others as they are.
func NoRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}
