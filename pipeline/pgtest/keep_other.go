//go:build !unix

package pgtest

import (
	"context"
	"os/exec"
)

// account stands for the current user: other systems have no user to change to.
type account struct{}

func serverAccount(context.Context) (*account, error) { return nil, nil }

func (*account) own(string) error { return nil }

func (*account) as(*exec.Cmd) {}

// keptCommand returns the command that runs a server program. Without a shell nobody outlives this process.
func keptCommand(_, program string, args []string) *exec.Cmd {
	return exec.Command(program, args...)
}

// end ends the server itself.
func (s *Server) end() { _ = s.cmd.Process.Kill() }
