//go:build !unix

package postgres

import (
	"os"
	"os/exec"
)

func attach(*exec.Cmd) {}

// askToEnd kills: there is no polite way here. What is left on the server is ended through another session.
func askToEnd(p *os.Process) { _ = p.Kill() }

func killGroup(int) {}
