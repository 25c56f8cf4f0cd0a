package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"
)

// child is one running client program. Its starter calls wait exactly once or more; terminate may come from anywhere.
type child struct {
	name   string
	cmd    *exec.Cmd
	stderr *messages
	grace  time.Duration
	done   chan struct{} // closed when the process is gone and its stderr was read
	err    error         // of cmd.Wait; valid after done
	asked  sync.Once
}

// command says what to start. Files are inherited; the caller closes its copies.
type command struct {
	path    string
	args    []string
	env     []string
	stdin   *os.File
	stdout  *os.File
	extra   *os.File // descriptor 3
	dir     string   // in which it runs; "": in ours
	account *account // under which it runs; nil: ours
}

// startChild starts a program on an OS thread that belongs to it until it has ended. The kernel kills the program when
// that thread ends (Pdeathsig), which is when this process dies and not earlier: a goroutine that stays locked keeps
// its thread.
func startChild(c command, grace time.Duration) (*child, error) {
	k := &child{name: programName(c.path), stderr: &messages{}, grace: grace, done: make(chan struct{})}
	k.cmd = exec.Command(c.path, c.args...)
	k.cmd.Env, k.cmd.Stderr = c.env, k.stderr
	if c.stdin != nil { // a nil *os.File in an interface is not nil
		k.cmd.Stdin = c.stdin
	}
	if c.stdout != nil {
		k.cmd.Stdout = c.stdout
	}
	if c.extra != nil {
		k.cmd.ExtraFiles = []*os.File{c.extra}
	}
	k.cmd.WaitDelay, k.cmd.Dir = grace, c.dir
	attach(k.cmd)
	c.account.as(k.cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := k.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		k.err = k.cmd.Wait()
		close(k.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", k.name, err)
	}
	return k, nil
}

// terminate asks the program to end, kills it after the grace, and returns when it is gone. What a wrapper script left of
// itself goes with it: it would hold our pipes open.
func (k *child) terminate() {
	defer killGroup(k.cmd.Process.Pid)
	k.asked.Do(func() { askToEnd(k.cmd.Process) })
	timer := time.NewTimer(k.grace)
	defer timer.Stop()
	select {
	case <-k.done:
		return
	case <-timer.C:
	}
	k.kill()
}

// kill ends the program at once and returns when it is gone.
func (k *child) kill() {
	_ = k.cmd.Process.Kill()
	killGroup(k.cmd.Process.Pid)
	<-k.done
}

// wait returns how the program ended: nil for exit code 0.
func (k *child) wait() error {
	<-k.done
	return k.err
}

// maxLine and keptLines bound what is kept of a program's messages.
const (
	maxLine   = 2048
	keptLines = 20
)

// messages is the stderr of a client program: it keeps the last lines, and the first warnings that matter, of however
// many come.
type messages struct {
	mu     sync.Mutex
	line   []byte
	last   []string
	warned []string
}

// Write takes a piece of the program's stderr. It never fails.
func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range p {
		if b == '\n' {
			m.take()
		} else if len(m.line) < maxLine {
			m.line = append(m.line, b)
		}
	}
	return len(p), nil
}

func (m *messages) take() {
	line := printable(m.line)
	m.line = m.line[:0]
	if line == "" {
		return
	}
	if m.last = append(m.last, line); len(m.last) > keptLines {
		m.last = m.last[1:]
	}
	if isWarning(line) && len(m.warned) < keptLines {
		m.warned = append(m.warned, line)
	}
}

// text returns the last lines.
func (m *messages) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(append(m.last[:len(m.last):len(m.last)], printable(m.line)), "\n")
}

// printable keeps terminals and logs safe from what a program says.
func printable(line []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(line), "?")))
}

// warnings returns the first warnings that say that something may be missing.
func (m *messages) warnings() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.warned...)
}

// isWarning says whether a line warns of something that may be missing from a dump. Two warnings are about order only.
func isWarning(line string) bool {
	_, text, ok := strings.Cut(line, "warning: ")
	return ok && !strings.HasPrefix(text, "there are circular foreign-key constraints") &&
		!strings.HasPrefix(text, "could not resolve dependency loop")
}
