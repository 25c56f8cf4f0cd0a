package gms

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fencepost/fencepost/gms/internal/consensus"
)

// KeepRoom makes the file in a home that keeps room for a way down in order when the disk is full, as Start does. Without room
// for it the error is ErrDiskFull: a host that waits asks again before it starts the group. A home that is not there yet, or
// was never started, is none to ask about: nothing is done. Nobody else may use the home.
func KeepRoom(home string) error {
	raft := (&homeDir{dir: home}).raftDir()
	if _, err := os.Stat(filepath.Clean(raft)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	err := consensus.KeepRoom(raft)
	if errors.Is(err, consensus.ErrDiskFull) {
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return err
}
