package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// node is one daemon over the whole demo: a configuration, and one process after the other.
type node struct {
	name   string
	config string
	socket string
	client *api.Client
	daemon string
	show   io.Writer // logs go there too; nil: to the file only

	logs []string // one file per process, oldest first
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; valid after done
}

// start starts a process of the node, in a group of its own (Ctrl-C is for the demo), which ends when the demo does. It
// is called from the main goroutine.
func (n *node) start(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	path := fmt.Sprintf("%s.%d.log", strings.TrimSuffix(n.config, ".yaml"), len(n.logs)+1)
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("open a log for node %s: %w", n.name, err)
	}
	n.logs = append(n.logs, path)
	cmd := exec.Command(n.daemon, "--config", n.config, "--no-warden") // its death is that of a machine: nobody starts it again
	cmd.Stderr = log
	if n.show != nil {
		cmd.Stderr = io.MultiWriter(log, n.show)
	}
	cmd.WaitDelay = 5 * time.Second
	bind(cmd)
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start node %s: %w", n.name, err), log.Close())
	}
	n.cmd, n.done = cmd, make(chan struct{})
	go func(done chan struct{}) { // ends with the process; kill, stop and end wait for it
		defer close(done)
		n.err = errors.Join(cmd.Wait(), log.Close())
	}(n.done)
	return nil
}

func (n *node) pid() int { return n.cmd.Process.Pid }

// kill ends the process and all below it at once, and returns when it did so and whom it met.
func (n *node) kill() (at time.Time, killed []process, err error) {
	killed, err = family(n.pid())
	if err != nil {
		return at, nil, err
	}
	at = time.Now()
	for _, p := range killed { // the node first, so that it does not see its children die
		if err := killHard(p); err != nil {
			return at, nil, err
		}
	}
	<-n.done
	return at, killed, nil
}

// stop asks the process to stop and returns when it has; an exit code other than 0 is an error.
func (n *node) stop(ctx context.Context) error {
	select {
	case <-n.done:
		return fmt.Errorf("node %s had ended by itself: %w", n.name, errors.Join(n.err, errors.New(n.lastWords())))
	default:
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop node %s: %w", n.name, err)
	}
	select {
	case <-n.done:
		if n.err != nil {
			return fmt.Errorf("stop node %s: %w", n.name, n.err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop node %s: it does not end: %w", n.name, context.Cause(ctx))
	}
}

// end makes sure that no process is left.
func (n *node) end() error {
	n.client.Close()
	if n.cmd == nil {
		return nil
	}
	select {
	case <-n.done:
		return nil
	default:
	}
	_, _, err := n.kill()
	return err
}

// lastWords is the last line of the newest log.
func (n *node) lastWords() string {
	text, err := os.ReadFile(n.logs[len(n.logs)-1])
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(lines[len(lines)-1])
}

// prefixed writes whole lines with a name before each. Several may share one mutex and one writer.
type prefixed struct {
	name string
	mu   *sync.Mutex
	w    io.Writer
	rest []byte
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		p.mu.Lock()
		_, err := fmt.Fprintf(p.w, "%s | %s\n", p.name, line)
		p.mu.Unlock()
		if p.rest = rest; err != nil {
			return 0, err
		}
	}
}
