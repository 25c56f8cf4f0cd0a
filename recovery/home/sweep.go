package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Sweep removes what the ended generation left: Dir/volatile and the pages. It reaches nothing else: it goes by names inside
// Dir and follows no symbolic link. Seal calls it; it may be called alone. An error names what could not be removed.
func (d *Drained) Sweep() error {
	if d.locks == nil {
		return fmt.Errorf("sweep: %w", ErrNotProven)
	}
	root, err := os.OpenRoot(d.k.cfg.Dir)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	defer root.Close()
	if err := root.RemoveAll(volatileDir); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), pagePrefix) && e.Type().IsRegular() {
			errs = append(errs, root.Remove(e.Name()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}
