package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// openers are the processes that have one of the files open, this one left out. An error says that some processes could not
// be looked at, those of other users; the list holds then what could be seen.
func openers(ids []string) ([]int, error) {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []int
	var errs []error
	for _, dir := range procs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		has, err := hasOpen(filepath.Join(dir, "fd"), ids)
		if err != nil && !gone(err) {
			errs = append(errs, fmt.Errorf("look at process %d: %w", pid, err))
		}
		if has {
			out = append(out, pid)
		}
	}
	return out, errors.Join(errs...)
}

func hasOpen(dir string, ids []string) (bool, error) {
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, fd := range fds {
		fi, err := os.Stat(filepath.Join(dir, fd.Name()))
		if err == nil && fi.Mode().IsRegular() && slices.Contains(ids, fileID(fi)) {
			return true, nil
		}
	}
	return false, nil
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
