package warden

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/fencepost/fencepost/recovery/home"
)

// process is the node process, started by this warden or adopted.
type process struct {
	ident    home.Ident
	cmd      *exec.Cmd // nil when adopted
	lifeline *os.File  // what we keep of the pipe; it closes when we die
	done     chan Exit // gets one value
}

// starter starts processes from one thread that lasts: the kernel takes the end of the thread that started a process for
// the end of its parent.
type starter struct {
	jobs chan func()
	done chan struct{}
}

func newStarter() *starter {
	s := &starter{jobs: make(chan func()), done: make(chan struct{})}
	go func() { // ends with close
		defer close(s.done)
		runtime.LockOSThread()
		for job := range s.jobs {
			job()
		}
		runtime.UnlockOSThread() // the thread goes on, so that nothing that is tied to it is killed
	}()
	return s
}

func (s *starter) close() { close(s.jobs); <-s.done }

// start starts the node of a run.
func (s *starter) start(c Config, r run) (*process, error) {
	env, err := r.environ(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.Command.Path, c.Command.Args...)
	cmd.Env, cmd.Dir = env, c.Command.Dir
	if c.Command.Stdout != nil {
		cmd.Stdout = c.Command.Stdout
	}
	if c.Command.Stderr != nil {
		cmd.Stderr = c.Command.Stderr
	}
	ours, theirs, err := pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin = theirs
	setApart(cmd, c.Policy.Tied)
	failed := make(chan error)
	s.jobs <- func() { failed <- cmd.Start() }
	err = errors.Join(<-failed, theirs.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the node: %w", err), ours.Close())
	}
	p := &process{cmd: cmd, lifeline: ours, done: make(chan Exit, 1)}
	p.ident, err = home.Identify(cmd.Process.Pid)
	if err != nil {
		p.ident = home.Ident{PID: cmd.Process.Pid} // it has ended already
	}
	p.ident.Run = r.text()
	go func() { // ends with the process, which is ours to end
		_ = cmd.Wait() // for this process and no other
		p.done <- exitOf(cmd.ProcessState)
	}()
	return p, nil
}

// pipe makes the lifeline. Its ends are not inherited except as standard input.
func pipe() (ours, theirs *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make the lifeline: %w", err)
	}
	return w, r, nil
}

func exitOf(st *os.ProcessState) Exit {
	if name := signalOf(st); name != "" {
		return Exit{Signal: name}
	}
	return Exit{Code: st.ExitCode()}
}

// cut gives up our end of the lifeline.
func (p *process) cut() {
	if p.lifeline != nil {
		_ = p.lifeline.Close()
		p.lifeline = nil
	}
}
