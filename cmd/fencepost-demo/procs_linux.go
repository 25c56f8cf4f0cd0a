package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is one line of /proc.
type process struct {
	pid, parent int
	name        string
}

// bind gives cmd a process group of its own and lets the kernel kill it when the thread that starts it ends.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ownStrays makes this process the parent of those of its descendants whose own parent dies, so that family finds them.
func ownStrays() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of stray processes: %w", err)
	}
	return nil
}

// killHard is kill -9; that the process is gone already is no error.
func killHard(p process) error {
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process %d (%s): %w", p.pid, p.name, err)
	}
	return nil
}

// family returns the process pid and all its living descendants, parents before their children.
func family(pid int) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var out []process
	for _, p := range all {
		if p.pid == pid {
			out = append(out, p)
		}
	}
	for i := 0; i < len(out); i++ {
		for _, p := range all {
			if p.parent == out[i].pid {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// processes reads /proc; zombies are left out.
func processes() ([]process, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []process
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("look at a process: %w", err)
		}
		p, alive, err := parseStat(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if alive {
			out = append(out, p)
		}
	}
	return out, nil
}

// parseStat reads "pid (name) state parent ..."; the name may hold anything, so that the last bracket counts.
func parseStat(text []byte) (p process, alive bool, err error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return p, false, errors.New("no name in brackets")
	}
	p.name = string(text[open+1 : end])
	rest := strings.Fields(string(text[end+1:]))
	if len(rest) < 2 {
		return p, false, errors.New("no parent")
	}
	if p.pid, err = strconv.Atoi(strings.TrimSpace(string(text[:open]))); err != nil {
		return p, false, err
	}
	p.parent, err = strconv.Atoi(rest[1])
	return p, rest[0] != "Z" && rest[0] != "X", err
}
