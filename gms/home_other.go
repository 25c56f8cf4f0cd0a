//go:build !linux

package gms

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lockFile makes a lock file that exists while the process lives. After a crash it stays and must be removed by hand:
// this system offers no portable lock that ends with its process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, withHint(fmt.Errorf("%w by another process", ErrHomeInUse), "when none runs there, remove "+path)
	}
	return f, err
}

func syncDir(string) error { return nil }
