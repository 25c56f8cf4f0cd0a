// Command fencepost-example is a small complete host app: a queue of jobs in a PostgreSQL table, which several processes
// work off. When one dies, another goes on with its jobs where they stand, and what the dead one still wanted to write is
// refused.
//
// Usage:
//
//	fencepost-example -init N                          make the table and N jobs of 20 steps
//	fencepost-example -node NAME -home DIR -gossip HOST:PORT -cluster HOST:PORT -seeds HOST:PORT,... -bootstrap NAME,...
//
// It links signals, gms and recovery and nothing else: it speaks to the database through psql, by the PG… variables of its
// environment, where an app of yours would use its driver. What is to be seen here is in three places: each job is worked on
// under a claim (work), each write names the claim's token (table.go), and the jobs of a dead node are shut out first and
// then given back to all (recoverJobs). SIGTERM ends it in order: the job in hand goes on elsewhere at once.
//
// Exit codes: 0 stopped as asked, 1 failed, 2 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

const jobsComponent = "jobs"

func main() {
	cfg := gms.DefaultConfig()
	seeds, bootstrap := "", ""
	jobs := flag.Int("init", 0, "make the table and so many `jobs`, and end")
	flag.StringVar(&cfg.Node, "node", cfg.Node, "this node's `name`")
	flag.StringVar(&cfg.Home, "home", cfg.Home, "its `directory`")
	flag.StringVar(&cfg.Gossip.Bind, "gossip", cfg.Gossip.Bind, "`address` of its gossip port")
	flag.StringVar(&cfg.Cluster.Bind, "cluster", cfg.Cluster.Bind, "`address` of its cluster port")
	flag.StringVar(&seeds, "seeds", "", "gossip `addresses` of the others")
	flag.StringVar(&bootstrap, "bootstrap", "", "`names` of the nodes that form the group")
	flag.Parse()
	cfg.Seeds, cfg.Bootstrap = list(seeds), list(bootstrap)
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", cfg.Node)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	err := error(nil)
	if *jobs > 0 {
		err = table{}.create(ctx, *jobs)
	} else {
		err = run(ctx, cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fencepost-example:", err)
		os.Exit(1)
	}
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// app is one process of the queue.
type app struct {
	group *gms.Group
	table table
	log   *slog.Logger
}

// run joins the group, works until ctx ends or the group does, and leaves in order.
func run(ctx context.Context, cfg gms.Config) (err error) {
	group, err := gms.New(cfg)
	if err != nil {
		return err
	}
	a := &app{group: group, log: cfg.Logger}
	manager, err := recovery.ForGroup(group, recovery.Options{Logger: cfg.Logger})
	if err != nil {
		return err
	}
	if err := group.Router().AddRecoveryFactory(jobsComponent, signals.HandleRecovery(a.recoverJobs)); err != nil {
		return err
	}
	if err := errors.Join(group.Start(ctx), manager.Start(ctx)); err != nil {
		return err
	}
	defer func() {
		manager.Stop()
		polite, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, group.Stop(polite))
	}()
	for ctx.Err() == nil && group.Err() == nil {
		// A run ends when its lease does; the group opens another one, and its component begins as after a restart.
		if err := errors.Join(group.AwaitStanding(ctx), manager.AwaitUnfenced(ctx, jobsComponent)); err != nil {
			continue
		}
		if standing, ok := group.RunContext(); ok {
			working, cancel := context.WithCancel(standing)
			done := context.AfterFunc(ctx, cancel)
			a.work(working)
			done()
			cancel()
		}
	}
	return group.Err()
}

// work takes one job after the other, each under a claim, until ctx ends with the run.
func (a *app) work(ctx context.Context) {
	for ctx.Err() == nil {
		ids, err := a.table.open(ctx)
		for _, id := range ids {
			claim, err := a.group.Claim(ctx, jobsComponent, id, 1)
			switch {
			case errors.Is(err, gms.ErrBusy), errors.Is(err, gms.ErrQuarantined):
				continue // somebody has it, or nobody should
			case err != nil:
				a.log.Warn("job not claimed", "job", id, "error", err)
				continue
			}
			how := signals.Complete
			if err := a.do(ctx, claim); err != nil {
				a.log.Warn("job not done", "job", id, "error", err)
				how = signals.Abandon
			}
			if err := a.group.EndClaim(ctx, claim, how); err != nil {
				a.log.Warn("claim not ended", "job", id, "error", err)
			}
		}
		if err != nil {
			a.log.Warn("queue not read", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond): // an app of yours would LISTEN
		}
	}
}

// do goes on with a job where it stands.
func (a *app) do(ctx context.Context, c signals.Claim) error {
	left, err := a.table.take(ctx, c.Item, c.Token, a.name())
	for err == nil && left > 0 {
		left, err = a.table.step(ctx, c.Item, c.Token)
	}
	return err
}

func (a *app) name() string {
	node, _ := a.group.Self()
	return node
}

// recoverJobs is called on one member for each that has died. It shuts the dead run out of its jobs: from then on the table
// refuses what that run wrote last. Then anybody may have them.
func (a *app) recoverJobs(ctx context.Context, s signals.FailureRecoverySignal) error {
	fence, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	orphans, err := fence.Orphans(fence.Context())
	if err != nil {
		return err
	}
	for _, o := range orphans {
		if err := a.table.shutOut(fence.Context(), o.Item, fence.Token()); err != nil {
			return fmt.Errorf("%w: %w", signals.ErrUnavailable, err) // a table that is away is no failure
		}
		a.log.Info("job recovered", "job", o.Item, "of", s.Appointment().Node, "token", fence.Token())
		err := fence.Free(fence.Context(), o)
		if errors.Is(err, signals.ErrPoison) { // it has killed as many processes as one may
			err = fence.End(fence.Context(), o.Claim, signals.Quarantine)
		}
		if err != nil {
			return err
		}
	}
	return nil // lowers the fence
}
