package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The plan of a whole server is written before anything of it is done, and again before and after each step, all of it at once. Who
// was killed is followed by the same command, which reads it.

// errTakenOver: somebody else has begun to carry the plan out.
var errTakenOver = errors.New("the same plan is being carried out by a command that was started later: this one ends")

// readPlan reads a plan; fs.ErrNotExist when there is none.
func readPlan(file string) (p ServerPlan, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil || p.Server == "" {
		return p, &adviceError{fmt.Errorf("%s is no plan of a restore", file), "name another file by --plan"}
	}
	return p, nil
}

// writePlan replaces the plan in the file.
func writePlan(file string, p ServerPlan) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	next, err := writeBeside(file, string(text)+"\n")
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("keep the plan: %w", errors.Join(err, os.Remove(next)))
	}
	return syncDir(filepath.Dir(file))
}

// keep writes what this run knows of the plan, unless another one has taken it over.
func (r *ServerRun) keep() error {
	there, err := readPlan(r.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case there.Runner != r.plan.Runner:
		return errTakenOver
	}
	return writePlan(r.file, r.plan)
}

// takeOver begins to carry the plan out: whoever did so before writes no more of it. What that one was doing on the server is
// ended when the same database is begun again.
func (r *ServerRun) takeOver(runner string) error {
	r.plan.Runner = runner
	return writePlan(r.file, r.plan)
}

// syncDir makes a rename in a directory last. Where directories cannot be synced, there is nothing to be done.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}
