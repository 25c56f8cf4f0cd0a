package component

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Environment of a child process, beside PATH, HOME, LANG, TZ and TMPDIR of this process and Exec.Env. Nothing else is
// inherited: what a daemon knows is not its children's. (Names with FENCEPOST_ are settings of the daemon and of the
// admin command, which a child may want to call.)
const (
	EnvComponent = "WORK_COMPONENT"
	EnvItem      = "WORK_ITEM"      // id
	EnvToken     = "WORK_TOKEN"     // to be handed to whatever the work changes
	EnvDeadline  = "WORK_DEADLINE"  // RFC 3339; SIGTERM comes then
	EnvAttempt   = "WORK_ATTEMPT"   // 1 for the first
	EnvReportFD  = "WORK_REPORT_FD" // descriptor for the JSON report
)

// maxReport bounds the JSON report of a child process.
const maxReport = 1 << 20

// Exec is work in a child process: any program. It gets the item as JSON on its standard input and what else it needs in
// the environment, and may write one Report as JSON to the descriptor in WORK_REPORT_FD. Exit code 0 without a report is
// a success; any other exit code, a signal, and a report that cannot be read are failures, whatever was reported. What it
// prints is logged, and its last lines are the details of a failure.
//
// It runs in a process group of its own. When the work must end the group gets SIGTERM, at Kill SIGKILL; what the child
// leaves of its group is killed when it ends, and work is over when nobody of the group is left. On Linux the child dies
// with this process. Unix only.
type Exec struct {
	Path   string       // required; looked up in PATH when it has no slash
	Args   []string     // without the program's name
	Dir    string       // working directory; "" = that of this process
	Env    []string     // name=value, added last
	Logger *slog.Logger // gets what the program writes to stdout and stderr; nil: nobody does
}

// Start implements Worker. An error is a program that could not be started.
func (e Exec) Start(ctx context.Context, j Job) (Work, error) {
	item, err := json.Marshal(j.Item)
	if err != nil {
		return nil, fmt.Errorf("encode item: %w", err)
	}
	report, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make report pipe: %w", err)
	}
	log := e.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &process{out: &lines{log: log.With("component", j.Component, "item", j.Item.ID)}, report: report, done: make(chan struct{})}
	p.cmd = exec.Command(e.Path, e.Args...)
	p.cmd.Dir, p.cmd.Env = e.Dir, append(environment(j), e.Env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = bytes.NewReader(item), p.out, p.out
	p.cmd.WaitDelay = 5 * time.Second // for pipes that somebody outside the group holds open
	err = p.start(theirs)
	_ = theirs.Close()
	if err != nil {
		_ = report.Close()
		return nil, fmt.Errorf("start %s: %w", e.Path, err)
	}
	p.stop = context.AfterFunc(ctx, func() { p.signal(politely) })
	return p, nil
}

func environment(j Job) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env,
		EnvComponent+"="+j.Component, EnvItem+"="+j.Item.ID, EnvToken+"="+strconv.FormatUint(j.Token, 10),
		EnvDeadline+"="+j.Deadline.UTC().Format(time.RFC3339), EnvAttempt+"="+strconv.Itoa(j.Attempt), EnvReportFD+"=3")
}

// process is a running child.
type process struct {
	cmd    *exec.Cmd
	out    *lines
	report *os.File
	stop   func() bool
	done   chan struct{} // closed when nobody of the group is left; err is set then
	err    error         // of cmd.Wait

	mu    sync.Mutex
	ended bool // the pid may be another's from now on
}

// how a group is told to end.
type how int

const (
	politely how = iota
	byForce
)

// start starts the child on an OS thread that is the child's until it has ended: the kernel kills it when that thread
// ends (on Linux), which a locked goroutine does not let happen earlier than the end of this process.
func (p *process) start(report *os.File) error {
	if err := attach(p.cmd, report); err != nil {
		return err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		pid := p.cmd.Process.Pid
		if awaitExit(pid) { // a zombie now, whose number is surely its own
			signalGroup(pid, byForce)
			p.markEnded()
			p.err = p.cmd.Wait()
		} else {
			p.err = p.cmd.Wait()
			p.markEnded()
			signalGroup(pid, byForce)
		}
		for wait := time.Millisecond; groupLives(pid); wait = min(2*wait, time.Second) {
			time.Sleep(wait)
		}
		close(p.done)
	}()
	return <-started
}

func (p *process) markEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// signal reaches the whole group, as long as its number is surely its own.
func (p *process) signal(h how) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		signalGroup(p.cmd.Process.Pid, h)
	}
}

// Kill implements Work.
func (p *process) Kill() { p.signal(byForce) }

// Wait implements Work.
func (p *process) Wait() (Report, error) {
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(p.report, maxReport+1))
		answers <- answer{text, err}
		_, _ = io.Copy(io.Discard, p.report) // more than enough was read; it shall not block
	}()
	<-p.done
	p.stop()
	// All of the group are gone. Whoever left it and still holds the descriptor has nothing more to say.
	_ = p.report.SetReadDeadline(time.Now().Add(time.Second))
	a := <-answers
	_ = p.report.Close()
	return p.judge(a.text, a.err)
}

// judge makes one answer of exit state and report.
func (p *process) judge(text []byte, readErr error) (Report, error) {
	var report Report
	var unreadable error
	switch {
	case len(text) > maxReport:
		unreadable = fmt.Errorf("it is longer than %d bytes", maxReport)
	case readErr != nil:
		unreadable = readErr
	case len(bytes.TrimSpace(text)) > 0:
		unreadable = json.Unmarshal(text, &report)
	}
	if unreadable != nil {
		report, unreadable = Report{}, fmt.Errorf("read report: %w", unreadable)
	}
	if p.err != nil && !errors.Is(p.err, exec.ErrWaitDelay) || unreadable != nil {
		return report, &ExitError{State: exitState(p.cmd.ProcessState), Output: p.out.text(), Report: unreadable}
	}
	return report, nil
}

// ExitError is a child process that ended badly.
type ExitError struct {
	State  string // "exit code 3", "signal: killed"
	Output string // the last lines it printed
	Report error  // why its report could not be read; nil when it could, or there was none
}

// Error implements error.
func (e *ExitError) Error() string {
	text := "child process: " + e.State
	if e.Report != nil {
		text += ": " + e.Report.Error()
	}
	if e.Output != "" {
		text += ": " + e.Output
	}
	return text
}

// Unwrap returns what is wrong with the report.
func (e *ExitError) Unwrap() error { return e.Report }

func exitState(s *os.ProcessState) string {
	if s == nil {
		return "unknown end"
	}
	if s.Exited() {
		return "exit code " + strconv.Itoa(s.ExitCode())
	}
	return cmp.Or(strings.TrimSpace(s.String()), "unknown end")
}
