package component

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// bind has the kernel kill the child when its thread, and so this process, ends.
func bind(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// awaitExit returns true when the child has exited, and leaves it a zombie.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// groupLives tells whether a process of the group may still act. Zombies cannot, and somebody else has to bury them.
func groupLives(group int) bool {
	if err := syscall.Kill(-group, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true // unknown counts as alive
	}
	for _, name := range stats {
		if text, err := os.ReadFile(name); err == nil && inGroup(text, group) {
			return true
		}
	}
	return false
}

// inGroup reads a line of /proc/PID/stat: "pid (name) state ppid pgrp …", where a name may contain anything.
func inGroup(stat []byte, group int) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return false
	}
	state := string(fields[0])
	return string(fields[2]) == strconv.Itoa(group) && state != "Z" && state != "X" && state != "x"
}
