package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// voteMoves is how long a removal may take while faults go on: it waits for work to end, for a quorum, and for a successor.
const voteMoves = 5 * time.Minute

// moveVote has a voter, the first one from a node on, leave for good, as an operator has it by node remove: it ends what it had
// begun, another member is promoted, it stops by itself and is forgotten. Undone, its node comes back as a newcomer, with an
// empty home and without a vote.
func (w *world) moveVote(ctx context.Context, from int) (undo func() error, err error) {
	by, _ := w.alive(ctx)
	if by == "" || !w.moves(true) {
		return nil, errAway
	}
	before, err := w.voters(ctx, by)
	victim := ""
	for i := range w.plan.Nodes {
		if name := w.nodes[(from+i)%w.plan.Nodes]; victim == "" && slices.Contains(before, name) {
			victim = name
		}
	}
	if by, _ = w.alive(ctx, victim); err != nil || victim == "" || by == "" {
		w.moves(false)
		return nil, errAway
	}
	w.want(victim, -1) // when it stops it is not started again
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, _ = w.client(by).RemoveNode(limited, api.NodeName{Node: victim}) // without an answer: asked again until it is gone
	return func() error {
		defer w.moves(false)
		defer w.want(victim, 1)
		if err := w.removed(victim); err != nil {
			return err
		}
		by, _ := w.alive(w.ctx, victim)
		after, err := w.voters(w.ctx, by)
		if by != "" && err == nil {
			w.said.add(aside, "%s has left for good: %s voted before, %s do now", victim, strings.Join(before, " "), strings.Join(after, " "))
			w.said.counts("votes that moved", 1)
		}
		return w.newcomer(victim)
	}, nil
}

// moves tells whether nobody is on the way out yet, and notes that somebody is; or that nobody is any more.
func (w *world) moves(begin bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	free := !w.moving
	w.moving = begin
	return free
}

// voters lists who has a vote, as a node knows it.
func (w *world) voters(ctx context.Context, by string) (list []string, err error) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	members, err := w.client(by).Members(limited)
	for _, m := range members {
		if m.Voter {
			list = append(list, m.Node)
		}
	}
	slices.Sort(list)
	return list, err
}

// removed asks for a node's removal until the group does not know the node any more, and waits until its processes have ended.
func (w *world) removed(node string) error {
	limited, cancel := context.WithTimeout(w.ctx, voteMoves)
	defer cancel()
	state := "not asked for yet"
	for gone := false; !gone; pause(limited, 200*time.Millisecond) {
		if limited.Err() != nil {
			return fmt.Errorf("%v after it was asked to leave for good, %s is %s", voteMoves, node, state)
		}
		by, _ := w.alive(limited, node)
		if by == "" {
			continue
		}
		once, cancel := context.WithTimeout(limited, 10*time.Second)
		r, err := w.client(by).RemoveNode(once, api.NodeName{Node: node})
		cancel()
		var said *api.Error
		if gone = errors.As(err, &said) && said.Code == api.CodeNotFound; !gone && err == nil {
			state = fmt.Sprintf("%s (%+v)", r.State, r.Drain)
		}
	}
	for len(w.runs(node)) > 0 {
		if pause(limited, 100*time.Millisecond); limited.Err() != nil {
			return fmt.Errorf("the group has forgotten %s, and it still runs: %v", node, w.runs(node))
		}
	}
	return nil
}

// runs lists the processes that a node's configuration was given to.
func (w *world) runs(node string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), w.in(node+".yaml")) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// newcomer empties a node's home: whoever comes under its name next is not known to the group, and founds nothing.
func (w *world) newcomer(node string) error {
	w.mu.Lock()
	w.joins[node] = true
	w.mu.Unlock()
	return errors.Join(os.RemoveAll(w.in(node)), w.configure(node))
}
