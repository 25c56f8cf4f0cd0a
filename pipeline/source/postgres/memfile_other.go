//go:build !linux

package postgres

import (
	"errors"
	"os"
)

// memoryFile always fails: this system has no files without a place on a disk. Indexes are then made one by one.
func memoryFile() (*os.File, error) { return nil, errors.ErrUnsupported }

const inheritedFile = "/dev/fd/3"
