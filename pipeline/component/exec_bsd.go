//go:build unix && !linux

package component

import (
	"errors"
	"syscall"
)

// bind does nothing: these systems cannot bind a child's life to ours.
func bind(*syscall.SysProcAttr) {}

// awaitExit does not wait: what is left of the group is ended after the child was buried.
func awaitExit(int) bool { return false }

// groupLives tells whether a process of the group is there.
func groupLives(group int) bool {
	return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}
