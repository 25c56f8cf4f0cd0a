//go:build unix

package gms

import (
	"errors"
	"os"
)

// syncDir makes what was renamed in a folder last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
