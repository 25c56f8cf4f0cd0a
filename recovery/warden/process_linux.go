package warden

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fencepost/fencepost/recovery/home"
)

// setApart gives the node a session of its own.
func setApart(cmd *exec.Cmd, tied bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if tied {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
}

func signalOf(st *os.ProcessState) string {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return unix.SignalName(ws.Signal())
	}
	return ""
}

// send sends a signal to that very process; that it is gone is no error.
func (p *process) send(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("send %v: not a signal of this system", sig)
	}
	if p.cmd != nil {
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("send %v: %w", sig, err)
		}
		return nil
	}
	fd, err := unix.PidfdOpen(p.ident.PID, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	if p.ident.Liveness() != home.Alive {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %v: %w", sig, err)
	}
	return nil
}

func (p *process) quit() error { return p.send(syscall.SIGQUIT) }
func (p *process) term() error { return p.send(syscall.SIGTERM) }
func (p *process) kill() error { return p.send(syscall.SIGKILL) }

// adopt watches a process that another warden started. stop ends the watching.
func adopt(ident home.Ident, stop <-chan struct{}) (*process, error) {
	fd, err := unix.PidfdOpen(ident.PID, 0)
	if err != nil {
		return nil, fmt.Errorf("adopt the node: %w", err)
	}
	if ident.Liveness() != home.Alive {
		return nil, errors.Join(errors.New("adopt the node: it has just ended"), unix.Close(fd))
	}
	p := &process{ident: ident, done: make(chan Exit, 1)}
	go func() { // ends with the process or with stop
		defer unix.Close(fd)
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			n, err := unix.Poll(poll, 200)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				p.done <- Exit{Unknown: true}
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	return p, nil
}

// inherit makes this process the parent of the orphans below it.
func inherit() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	return nil
}

// findsRemains: it is known when nothing of a run is left.
const findsRemains = true

// remains are the processes that are left of a run.
type remains struct {
	run  string
	node int  // the node's number, which its session and its group have too
	sole bool // all below this process are of the run

	since uint64 // when the node was started, as home.Ident has it: what is older is not of the run; 0 for not known
}

// endAll kills what is left, again and again until a look finds nothing, and says how many it killed. Only children that
// were found to be of the run are waited for.
func (r remains) endAll(ctx context.Context) (int, error) {
	killed := map[int]bool{}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := r.find()
		if err != nil || len(left) == 0 {
			return len(killed), err
		}
		for _, p := range left {
			if p.zombie {
				_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil) // ours, and of the run
				continue
			}
			ident, err := home.Identify(p.pid)
			if err != nil {
				continue // gone
			}
			killed[p.pid] = true
			if err := ident.Kill(); err != nil {
				return len(killed), err
			}
		}
		select {
		case <-ctx.Done():
			return len(killed), fmt.Errorf("kill what is left of run %s: %d remain: %w", r.run, len(left), context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// reap collects the orphans that have ended, while the node lives. It looks for them only when some child has ended, which
// is told without collecting it.
func (r remains) reap() {
	var ended unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || ended.Signo == 0 {
		return
	}
	left, _ := r.find()
	for _, p := range left {
		if p.zombie && p.pid != r.node {
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
}

type entry struct {
	pid, parent, group, session int
	zombie                      bool
	start                       uint64
}

// find looks for processes of the run: by its mark in their environment, by the node's session and group, by descent from
// any of those, and, if all below this process are of the run, by descent from this process. A zombie counts while it is
// ours to wait for.
func (r remains) find() ([]entry, error) {
	all, err := entries()
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	in := map[int]bool{}
	for _, e := range all {
		in[e.pid] = e.session == r.node || e.group == r.node || r.sole && e.parent == self || !e.zombie && e.start >= r.since && marked(e.pid, r.run)
	}
	for grown := true; grown; {
		grown = false
		for _, e := range all {
			if !in[e.pid] && in[e.parent] {
				in[e.pid], grown = true, true
			}
		}
	}
	var out []entry
	for _, e := range all {
		if in[e.pid] && e.pid != self && (!e.zombie || e.parent == self) {
			out = append(out, e)
		}
	}
	return out, nil
}

func marked(pid int, run string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+runVariable+"="+run+"\x00"))
}

// statRoom is more than the kernel tells of a process in /proc/<pid>/stat: 52 numbers and a name.
const statRoom = 2048

// statOf reads /proc/<pid>/stat into room, with one call each to open, read and close: it is done for every process of the
// machine, at the moment when others want the processors to recover. nil: there is no such process.
func statOf(pid string, room []byte) []byte {
	fd, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, room)
	if err != nil || n == 0 {
		return nil
	}
	return room[:n]
}

func entries() ([]entry, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []entry
	room := make([]byte, statRoom)
	for _, name := range names {
		var e entry
		if e.pid, err = strconv.Atoi(name); err != nil {
			continue // not a process
		}
		text := statOf(name, room)
		if text == nil {
			continue // it has ended
		}
		f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(f) < 20 {
			return nil, fmt.Errorf("read the state of process %s: %q", name, text)
		}
		if e.start, err = strconv.ParseUint(f[19], 10, 64); err != nil {
			return nil, fmt.Errorf("read the state of process %s: %w", name, err)
		}
		e.parent, _ = strconv.Atoi(f[1])
		e.group, _ = strconv.Atoi(f[2])
		e.session, _ = strconv.Atoi(f[3])
		e.zombie = f[0] == "Z" || f[0] == "X"
		out = append(out, e)
	}
	return out, nil
}
