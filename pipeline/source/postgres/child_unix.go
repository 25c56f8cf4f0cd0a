//go:build unix && !linux

package postgres

import (
	"os"
	"os/exec"
	"syscall"
)

// attach puts the child into a process group of its own. These systems cannot bind its life to ours: when this process
// is killed the child ends with its next read or write on a broken pipe.
func attach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// askToEnd sends SIGTERM: pg_dump and pg_restore then cancel their query on the server before they end.
func askToEnd(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

// killGroup kills whoever is left of a child's process group. Process ids are given out in turn: this one is not taken
// again in the moment since its end.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
