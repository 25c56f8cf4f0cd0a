//go:build unix

package component

import (
	"os"
	"os/exec"
	"syscall"
)

// attach gives the child its descriptor 3 and a process group of its own, and binds its life to ours where it can.
func attach(cmd *exec.Cmd, report *os.File) error {
	cmd.ExtraFiles = []*os.File{report}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	bind(cmd.SysProcAttr)
	return nil
}

func signalGroup(pid int, h how) {
	sig := syscall.SIGTERM
	if h == byForce {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-pid, sig)
}
