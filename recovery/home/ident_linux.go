package home

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// bootKnown: this system says when it was started anew.
const bootKnown = true

// Self is the identity of this process. An error is that of reading /proc.
func Self(run string) (Ident, error) {
	id, err := Identify(os.Getpid())
	id.Run = run
	return id, err
}

// Identify is the identity of a living process of this pid namespace. An error says that there is no such process, or that
// /proc cannot be read.
func Identify(pid int) (Ident, error) {
	boot, err := bootID()
	if err != nil {
		return Ident{}, err
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Ident{}, fmt.Errorf("read the pid namespace: %w", err)
	}
	st, err := readStat(pid)
	if err != nil {
		return Ident{}, err
	}
	return Ident{Boot: boot, PIDNS: ns, PID: pid, Start: st.start}, nil
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Liveness says whether that very process runs: a number that was given to another process since counts as dead, another
// pid namespace as unknown. A stopped process is alive.
func (i Ident) Liveness() Liveness {
	boot, err := bootID()
	if err != nil || i.PID <= 0 {
		return Unknown
	}
	if i.Boot != boot {
		return Dead
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != i.PIDNS {
		return Unknown
	}
	st, err := readStat(i.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH):
		return Dead
	case err != nil:
		return Unknown
	case st.start != i.Start:
		return Dead
	case st.state != "Z" && st.state != "X":
		return Alive
	}
	// The first thread of a process may be a zombie while others go on.
	if tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", i.PID)); err == nil && len(tasks) > 1 {
		return Alive
	}
	return Dead
}

// Kill sends SIGKILL to that very process, never to another one with its number. It is no error that the process is dead.
func (i Ident) Kill() error {
	fd, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %v: %w", i, err)
	}
	defer unix.Close(fd)
	// Looked at after the descriptor was opened: it stands for the same process or for one that is gone.
	if i.Liveness() != Alive {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill %v: %w", i, err)
	}
	return nil
}

type procStat struct {
	state string
	start uint64
}

// readStat reads /proc/<pid>/stat: "pid (name) state …", where the name may hold anything and start is field 22.
func readStat(pid int) (procStat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 20 {
		return procStat{}, fmt.Errorf("look at process %d: %d fields", pid, len(f))
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("look at process %d: start time: %w", pid, err)
	}
	return procStat{state: f[0], start: start}, nil
}
