//go:build !unix

package component

import (
	"errors"
	"os"
	"os/exec"
)

func attach(*exec.Cmd, *os.File) error {
	return errors.New("work in child processes needs a Unix system")
}

func awaitExit(int) bool { return false }

func signalGroup(int, how) {}

func groupLives(int) bool { return false }
