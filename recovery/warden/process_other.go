//go:build !linux

package warden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/fencepost/fencepost/recovery/home"
)

// setApart does nothing here: a node shares its warden's group, and Tied is not kept by the system.
func setApart(*exec.Cmd, bool) {}

// signalOf is how the system writes what ended a process; empty when the process did.
func signalOf(st *os.ProcessState) string {
	if st.Exited() {
		return ""
	}
	return st.String()
}

func (p *process) send(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v: %w", sig, err)
	}
	return nil
}

// quit kills: there is no signal that every system has for "write your stacks".
func (p *process) quit() error { return p.kill() }

// term asks by interrupt; a system that cannot send it says so, and the node is asked by the end of its lifeline.
func (p *process) term() error {
	err := p.send(os.Interrupt)
	if err != nil {
		p.cut()
	}
	return err
}

func (p *process) kill() error { return p.send(os.Kill) }

// adopt is not possible here: a number may be another process by now.
func adopt(home.Ident, <-chan struct{}) (*process, error) {
	return nil, fmt.Errorf("adopt the node: %w", errors.ErrUnsupported)
}

func inherit() error { return nil }

// findsRemains: nobody here can say that nothing of a run is left, so no obituary says it.
const findsRemains = false

// remains of a run cannot be found here: the children of a node must end with it by themselves.
type remains struct {
	run  string
	node int
	sole bool

	since uint64
}

func (remains) endAll(context.Context) (int, error) { return 0, nil }

func (remains) reap() {}
