package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// afflict carries the plan out, each fault at its time, and returns when all are over. What a fault breaks it mends itself.
func (w *world) afflict(ctx context.Context) {
	var all sync.WaitGroup
	for _, f := range w.plan.Faults {
		all.Go(func() {
			if pause(ctx, f.At); ctx.Err() != nil {
				return
			}
			w.strike(ctx, f)
		})
	}
	all.Wait()
}

// errAway: there is nothing that the fault could be done to.
var errAway = errors.New("nothing to do it to")

// strike does one fault, and undoes it after its time, or when ctx ends.
func (w *world) strike(ctx context.Context, f fault) {
	if why := w.cannot(f.Kind); why != "" {
		w.said.add(aside, "left out: %v (%s)", f, why)
		w.said.counts("faults left out", 1)
		return
	}
	from := w.said.now()
	undo, err := w.begin(ctx, f)
	if err == nil {
		w.said.counts("faults", 1)
		pause(ctx, f.For)
	}
	if undo != nil {
		err = errors.Join(err, undo())
	}
	text := f.String()
	switch {
	case errors.Is(err, errAway):
		w.said.add(aside, "left out: %s", f)
		w.said.counts("faults left out", 1)
		return
	case err != nil && w.ctx.Err() == nil:
		text += ": " + err.Error()
		w.t.Errorf("fault %v: %v", f, err)
	}
	w.said.span(faults, from, w.said.now(), text)
}

// cannot says why a kind of fault is not possible here.
func (w *world) cannot(k kind) string {
	switch {
	case k.network() && w.net.reason != "":
		return w.net.reason
	case k == lose && !w.net.canLose():
		return "there is no iptables"
	case k == fillDisk && !mounted(w.disk):
		return "the storage has no disk of its own"
	}
	return ""
}

// begin does a fault; what it returns undoes it.
func (w *world) begin(ctx context.Context, f fault) (undo func() error, err error) {
	node, guest := w.nodes[f.Node], w.guests[f.Node%len(w.guests)]
	switch f.Kind {
	case killNode:
		return nil, hitNode(w.process(node), syscall.SIGKILL)
	case killWarden:
		return nil, hit(w.process(node), syscall.SIGKILL)
	case killChild:
		return nil, w.killChild(node)
	case killGuest:
		return nil, hit(w.process(guest), syscall.SIGKILL)
	case killBoth:
		return w.dead(ctx, node)
	case hostDies:
		return w.dead(ctx, w.residents(w.host(node))...)
	case allDie:
		return w.dead(ctx, w.everybody()...)
	case pauseNode:
		p := w.process(node)
		return func() error { return alreadyGone(hitNode(p, syscall.SIGCONT)) }, hitNode(p, syscall.SIGSTOP)
	case pauseHost:
		return w.paused(w.residents(w.host(node)))
	case pauseGuest:
		return w.paused([]string{guest})
	case leave:
		return w.gone(node)
	case leaveLate:
		if err := hitNode(w.process(node), syscall.SIGKILL); err != nil {
			return nil, err
		}
		return w.gone(w.nodes[f.Other])
	case hog:
		return hogs()
	case crashBase:
		return nil, away(w.crash())
	case stallBase:
		return w.stallBase()
	case slowBase:
		return w.slowBase()
	case crashStore:
		w.net.die(w.store.host)
		return w.serve, nil
	case stallStore:
		p := w.store.process
		return func() error { return hit(p, syscall.SIGCONT) }, hit(p, syscall.SIGSTOP)
	case storeErrs:
		w.store.failing.Add(int64(f.Share))
		return func() error { w.store.failing.Add(-int64(f.Share)); return nil }, nil
	case fillDisk:
		return w.fill()
	case slowDisk:
		return w.setOff(node+".disk", f.slow())
	case jumpClock:
		return w.setOff(node+".clock", f.jump())
	case drainLead:
		return w.drain(ctx)
	case grow:
		return w.grow()
	case moveVote:
		return w.moveVote(ctx, f.Node)
	}
	return w.partition(ctx, f)
}

// away takes an error for "not there at this moment".
func away(err error) error {
	if err != nil {
		return errAway
	}
	return nil
}

func alreadyGone(err error) error {
	if errors.Is(err, errAway) {
		return nil
	}
	return err
}

func hit(p *process, s syscall.Signal) error {
	if p == nil || ended(p) {
		return errAway
	}
	return away(p.cmd.Process.Signal(s))
}

// hitNode signals the node below a warden.
func hitNode(warden *process, s syscall.Signal) error {
	if warden == nil || ended(warden) {
		return errAway
	}
	pid := childOf(warden.cmd.Process.Pid)
	if pid == 0 {
		return errAway
	}
	return away(syscall.Kill(pid, s))
}

// killChild kills one of the client programs that a node runs.
func (w *world) killChild(node string) error {
	p := w.process(node)
	if p == nil {
		return errAway
	}
	for _, pid := range descendants(p.cmd.Process.Pid) {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err == nil && slices.Contains([]string{"pg_dump", "pg_restore", "psql"}, filepath.Base(program)) {
			return away(syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	return errAway
}

// residents are the node and the host app of a host.
func (w *world) residents(h *host) (list []string) {
	for _, name := range w.everybody() {
		if w.host(name) == h {
			list = append(list, name)
		}
	}
	return list
}

// dead kills all processes of those named at once; they come back when it is undone.
func (w *world) dead(ctx context.Context, names ...string) (undo func() error, err error) {
	for _, name := range names {
		w.want(name, -1)
	}
	var family []int
	for _, name := range names {
		if p := w.process(name); p != nil && !ended(p) {
			family = append(append(family, p.cmd.Process.Pid), descendants(p.cmd.Process.Pid)...)
		}
	}
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} { // so that nobody sees another one die
		for _, pid := range family {
			_ = syscall.Kill(pid, s)
		}
	}
	for _, name := range names {
		if p := w.process(name); p != nil {
			select {
			case <-p.done:
			case <-ctx.Done():
			}
		}
	}
	return func() error {
		for _, name := range names {
			w.want(name, 1)
		}
		return nil
	}, nil
}

// paused has all processes of those named stand still.
func (w *world) paused(names []string) (undo func() error, err error) {
	var family []int
	for _, name := range names {
		if p := w.process(name); p != nil && !ended(p) {
			family = append(append(family, p.cmd.Process.Pid), descendants(p.cmd.Process.Pid)...)
		}
	}
	return standStill(family)
}

// standStill stops processes, and lets them go on.
func standStill(pids []int) (undo func() error, err error) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() error {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		return nil
	}, nil
}

// gone stops one in order; it comes back when it is undone.
func (w *world) gone(name string) (undo func() error, err error) {
	w.want(name, -1)
	return func() error { w.want(name, 1); return nil }, alreadyGone(hit(w.process(name), syscall.SIGTERM))
}

// hogs take all CPUs.
func hogs() (undo func() error, err error) {
	var all []*exec.Cmd
	for range 2 * runtime.NumCPU() {
		c := exec.Command("sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return func() error {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		return nil
	}, nil
}

func (w *world) stallBase() (undo func() error, err error) {
	pids, err := w.postmaster()
	if err != nil {
		return nil, err
	}
	return standStill(pids)
}

// slowBase has the server stand still nine tenths of the time, a tenth of a second each.
func (w *world) slowBase() (undo func() error, err error) {
	if _, err := w.postmaster(); err != nil {
		return nil, away(err)
	}
	over := make(chan struct{})
	var flicker sync.WaitGroup
	flicker.Go(func() {
		for {
			goOn := func() error { return nil }
			if pids, err := w.postmaster(); err == nil { // new sessions are among them
				goOn, _ = standStill(pids)
			}
			for _, left := range []time.Duration{90 * time.Millisecond, 10 * time.Millisecond} {
				select {
				case <-over:
					_ = goOn()
					return
				case <-time.After(left):
				}
				_ = goOn()
			}
		}
	})
	return func() error { close(over); flicker.Wait(); return nil }, nil
}

// setOff writes for a node by how much something is off, which the programs that are built here read; see the tag chaos.
func (w *world) setOff(file string, by time.Duration) (undo func() error, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := w.in(file)
	if _, err := os.Stat(path); err == nil {
		return nil, errAway // one at a time
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(by.String()), 0o600); err != nil {
		return nil, err
	}
	return func() error { return os.Remove(path) }, os.Rename(fresh, path)
}

// fill takes all room of the storage's disk.
func (w *world) fill() (undo func() error, err error) {
	file := filepath.Join(w.disk, "filled")
	f, err := os.Create(file)
	if err != nil {
		return nil, away(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return func() error { return os.Remove(file) }, err
	}
	return func() error { return os.Remove(file) }, nil
}

// drain has the leader hand over, and take up work again later.
func (w *world) drain(ctx context.Context) (undo func() error, err error) {
	by, view := w.alive(ctx)
	if by == "" || view.Leader[0] != 'n' {
		return nil, errAway
	}
	name := api.NodeName{Node: view.Leader}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := w.client(by).DrainNode(limited, name); err != nil {
		return nil, errAway
	}
	return func() error {
		return w.await("the node is undrained", func() error {
			by, _ := w.alive(w.ctx)
			if by == "" {
				return errAway
			}
			_, err := w.client(by).UndrainNode(w.ctx, name)
			return err
		})
	}, nil
}

// grow has the late node join; undone, it leaves.
func (w *world) grow() (undo func() error, err error) {
	late := w.nodes[w.plan.Nodes]
	if p := w.process(late); p != nil && !ended(p) {
		return nil, errAway
	}
	return func() error {
		w.want(late, -1)
		err := alreadyGone(hit(w.process(late), syscall.SIGTERM))
		<-w.process(late).done
		w.want(late, 1)
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.procs, late)
		return err
	}, w.launch(late)
}
