//go:build (!unix && !windows) || aix || solaris || illumos

package gms

import (
	"errors"
	"os"
)

// tryLock is refused: no lock of this system is known to end with its process.
func tryLock(*os.File) (held bool, err error) { return false, errors.ErrUnsupported }
