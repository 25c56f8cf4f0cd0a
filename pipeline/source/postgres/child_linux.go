package postgres

import (
	"os"
	"os/exec"
	"syscall"
)

// attach binds the child's life to ours, in a process group of its own: Ctrl-C is for us to handle.
func attach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// askToEnd sends SIGTERM: pg_dump and pg_restore then cancel their query on the server before they end.
func askToEnd(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

// killGroup kills whoever is left of a child's process group. Process ids are given out in turn: this one is not taken
// again in the moment since its end.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
