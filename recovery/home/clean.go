package home

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Recreate is the step that removes what is at path and lets create make it anew: for databases that can be lost.
func Recreate(path string, create func(ctx context.Context, path string) error) Step {
	return Step{Name: "recreate " + path, Run: func(ctx context.Context, _ Cleaning) error {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		return create(ctx, path)
	}}
}

// RestoreFrom is the step that puts a copy of the file archive at path: for databases that are saved now and then. What was
// there is replaced in one rename, after the copy is whole and on the disk.
func RestoreFrom(path, archive string) Step {
	return Step{Name: "restore " + path, Run: func(context.Context, Cleaning) error {
		from, err := os.Open(archive)
		if err != nil {
			return err
		}
		defer from.Close()
		tmp := path + ".restored"
		to, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from)
		if err == nil {
			err = to.Sync()
		}
		if err := errors.Join(err, to.Close()); err != nil {
			return errors.Join(err, os.Remove(tmp))
		}
		if err := os.Rename(tmp, path); err != nil {
			return err
		}
		return syncDir(parent(path))
	}}
}

// Verify is the step that checks what is at path; when the check fails, the steps otherwise run and the check is made again.
// Without otherwise a failed check ends the recovery.
func Verify(path string, check func(ctx context.Context, path string) error, otherwise ...Step) Step {
	return Step{Name: "verify " + path, Run: func(ctx context.Context, c Cleaning) error {
		bad := check(ctx, path)
		if bad == nil || len(otherwise) == 0 {
			return bad
		}
		for _, s := range otherwise {
			if err := s.Run(ctx, c); err != nil {
				return errors.Join(bad, fmt.Errorf("%s: %w", s.Name, err))
			}
		}
		return check(ctx, path)
	}}
}
