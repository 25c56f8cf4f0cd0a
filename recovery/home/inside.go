package home

import (
	"fmt"
	"os"
)

// replaced has a line for each seat whose sealed file is not the one under its name any more, as long as a process has that
// file open or nobody can say.
func (d *Drained) replaced() []string {
	if boot, err := bootID(); err != nil || boot != d.seal.Boot {
		return nil
	}
	now := map[string]bool{}
	for _, l := range d.locks {
		if fi, err := l.f.Stat(); err == nil {
			now[fileID(fi)] = true
		}
	}
	var lost []string
	for _, id := range d.seal.Locks {
		if id != "" && !now[id] {
			lost = append(lost, id)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	pids, err := openers(lost)
	var out []string
	for _, pid := range pids {
		out = append(out, fmt.Sprintf("process %d has a lock file open that was replaced", pid))
	}
	if err != nil {
		out = append(out, fmt.Sprintf("a lock file was replaced, and who had it cannot be seen: %v", err))
	}
	return out
}

// kill kills whoever holds one of the seats: the recorded holder, and all who have the file open.
func (d *Drained) kill(paths []string, killed map[int]bool) {
	ids := append([]string(nil), d.seal.Locks...)
	for _, path := range paths {
		if fi, err := os.Stat(path); err == nil {
			ids = append(ids, fileID(fi))
		}
		if rec, err := readRecordAt(path); err == nil && rec.In && rec.Ident.PID != os.Getpid() {
			d.killOne(rec.Ident, killed)
		}
	}
	pids, err := openers(ids)
	if err != nil {
		d.k.cfg.Logger.Warn("home: not all who hold seats can be seen", "error", err)
	}
	for _, pid := range pids {
		if ident, err := Identify(pid); err == nil && pid != os.Getpid() {
			d.killOne(ident, killed)
		}
	}
}

func (d *Drained) killOne(ident Ident, killed map[int]bool) {
	if killed[ident.PID] || ident.Liveness() == Dead {
		return
	}
	killed[ident.PID] = true
	err := ident.Kill()
	d.k.cfg.Logger.Warn("home: killed who was still inside", "process", ident.PID, "error", err)
}
