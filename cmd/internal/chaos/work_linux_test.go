package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// labour is what the group is asked to do, and what became of it.
type labour struct {
	w *world

	mu       sync.Mutex
	restores map[string]string // task → target
	deletes  []string          // backups
	seen     []api.Recovery    // as members told of them, in the order of looking
	closed   map[string]bool   // runs that recoveries are of
	halves   []string          // copies that were seen by half
}

func newLabour(w *world) *labour {
	return &labour{w: w, restores: map[string]string{}, closed: map[string]bool{}}
}

// run asks for work and looks at members, until ctx ends.
func (l *labour) run(ctx context.Context) {
	rng := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(l.w.plan.Seed, 20+n)) }
	var all sync.WaitGroup
	for i, do := range []func(context.Context, *rand.Rand) error{l.backup, l.restore, l.delete, l.move, l.look} {
		all.Go(func() {
			rng := rng(uint64(i))
			for ctx.Err() == nil {
				limited, cancel := context.WithTimeout(ctx, 15*time.Second)
				_ = do(limited, rng) // who is away is asked another time
				cancel()
				pause(ctx, time.Duration(500+rng.IntN(1000+4000*min(i, 2)))*time.Millisecond)
			}
		})
	}
	all.Wait()
}

// somebody is a node, whether or not it is there.
func (l *labour) somebody(rng *rand.Rand) *api.Client {
	return l.w.client(l.w.nodes[rng.IntN(l.w.plan.Nodes)])
}

func (l *labour) backup(ctx context.Context, rng *rand.Rand) error {
	c := l.somebody(rng)
	active, err := c.Tasks(ctx, api.TaskFilter{Active: true})
	if err != nil || len(active) > 4 {
		return err
	}
	_, err = c.CreateBackup(ctx, api.CreateBackup{Database: "shop"})
	return err
}

// good lists the backups that are there, newest first.
func (l *labour) good(ctx context.Context, c *api.Client) (list []api.Backup, err error) {
	list, err = c.Backups(ctx, api.BackupFilter{Limit: 50})
	return slices.DeleteFunc(list, func(b api.Backup) bool { return b.State != api.Completed }), err
}

// restore asks for a new copy of the newest backup, or for another content of the one copy that is always there.
func (l *labour) restore(ctx context.Context, rng *rand.Rand) error {
	c := l.somebody(rng)
	list, err := l.good(ctx, c)
	if err != nil || len(list) == 0 {
		return err
	}
	r := api.RestoreBackup{Backup: list[0].ID, Target: "copy", Replace: true}
	switch rng.IntN(3) {
	case 0:
		r.Target, r.Replace = fmt.Sprint("new", l.w.said.now().Milliseconds()), false
	case 1:
		r.Target, r.InPlace, r.Replace = "place", true, true
	}
	task, err := c.Restore(ctx, r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restores[task.ID] = r.Target
	return nil
}

// delete has the oldest of more than ten backups go.
func (l *labour) delete(ctx context.Context, rng *rand.Rand) error {
	c := l.somebody(rng)
	list, err := l.good(ctx, c)
	if err != nil || len(list) <= 10 {
		return err
	}
	_, err = c.DeleteBackup(ctx, list[len(list)-1].ID, api.DeleteBackup{Now: true})
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.deletes = append(l.deletes, list[len(list)-1].ID)
	}
	return err
}

// move changes the database: what one account gives another one takes.
func (l *labour) move(_ context.Context, rng *rand.Rand) error {
	giver, taker := 1+rng.IntN(1500), 1+rng.IntN(1500)
	return l.w.sql(l.w.base.dsn("shop"), fmt.Sprintf(`DO $$ BEGIN
		UPDATE accounts SET amount = amount - 5 WHERE id = %[1]d; UPDATE accounts SET amount = amount + 5 WHERE id = %[2]d;
		INSERT INTO moves (giver, taker) VALUES (%[1]d, %[2]d); END $$`, giver, taker))
}

// look asks a node what it knows of recoveries and members.
func (l *labour) look(ctx context.Context, rng *rand.Rand) error {
	list, err := l.somebody(rng).Recoveries(ctx)
	if err != nil {
		return err
	}
	l.note(list)
	return nil
}

// note keeps what was told of recoveries, and tells the chronicle what is new.
func (l *labour) note(list []api.Recovery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range list {
		name := r.Node + "/" + r.Run
		if !l.closed[name] {
			l.closed[name] = true
			l.w.said.add(recoveries, "run of %s is closed: %s", r.Node, r.Evidence)
			l.w.said.counts(runsClosed+", "+r.Evidence, 1)
		}
		key := r.Component + " of " + name
		if r.Ended != 0 && !l.closed[key] {
			l.closed[key] = true
			l.w.said.counts(recoveriesEnded, 1)
			if r.Token != 0 && len(r.Steps) > 0 {
				l.w.said.add(recoveries, "%s of %s recovered by %s", r.Component, r.Node, r.Recoverer)
			}
		}
	}
	l.seen = append(l.seen, list...)
}

// halfway looks at the copy that is replaced again and again: at no time is it there by half.
func (l *labour) halfway(ctx context.Context) {
	for ctx.Err() == nil {
		for _, target := range []string{"copy", "place"} {
			limited, cancel := context.WithTimeout(ctx, 10*time.Second)
			got, err := l.w.text(limited, l.w.base.dsn(target), entire)
			cancel()
			if err == nil && got != isEntire {
				l.halves = append(l.halves, fmt.Sprintf("the database %s, at %v: %q", target, l.w.said.now(), got)) // nobody else does, until all work has ended
			}
		}
		pause(ctx, 500*time.Millisecond)
	}
}
