package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/signals"
)

// jobs is the component of the host apps.
const jobs = "jobs"

// guestSetup is what a host app is started with.
type guestSetup struct {
	Node, Address, Dir, Resource string
	Seeds                        []string
	Voters                       int
	Seed                         uint64
}

// note is one line of what a host app writes down. T, Call and At are of the machine's monotonic clock, which all processes
// on it share.
type note struct {
	Kind string // hold, call, return, view, left
	T    time.Duration
	Run  string `json:",omitempty"`

	// hold: at T, and not only soon after, What was held with Token.
	What  string `json:",omitempty"`
	Token uint64 `json:",omitempty"`

	// call, and return with the same ID: an operation on a lock or on a key of the cache.
	ID      uint64 `json:",omitempty"`
	Op      string `json:",omitempty"` // read, put, swap; lock, unlock; raise, release
	Value   string `json:",omitempty"`
	Version uint64 `json:",omitempty"` // call of swap: the version expected; return: of what was read or put
	Outcome string `json:",omitempty"` // return: ok, none (there is no entry), no (certainly not done), unknown

	// view
	Runs []string `json:",omitempty"`
	Gap  bool     `json:",omitempty"` // views before it were not seen
}

func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}

// guest is a host app: it works on jobs under claims, recovers those of the dead, and is a client of locks and of the cache.
type guest struct {
	setup guestSetup
	group *gms.Group
	res   far
	log   *slog.Logger

	mu   sync.Mutex
	out  *os.File
	next uint64
}

// guestMain is the program of a host app.
func guestMain(text string) int {
	g := &guest{res: far{client: &http.Client{Timeout: 2 * time.Second}}}
	err := json.Unmarshal([]byte(text), &g.setup)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = g.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (g *guest) config() (cfg gms.Config, err error) {
	s := g.setup
	text, err := os.ReadFile(filepath.Join(s.Dir, "gossip.key"))
	if err != nil {
		return cfg, err
	}
	in := func(file string) string { return filepath.Join(s.Dir, file) }
	cfg = gms.Config{
		Node: s.Node, Home: in(s.Node), Seeds: s.Seeds, Profile: gms.ProfileLAN, Voters: s.Voters, FenceTTL: fenceTTL, MaxAttempts: attempts,
		Gossip: gms.Endpoint{Bind: s.Address + ":7956"}, Cluster: gms.Endpoint{Bind: s.Address + ":7957"}, Logger: g.log,
		Certificates: certs.Files(in(s.Node+".pem"), in(s.Node+".key"), in("ca.pem")),
	}
	cfg.GossipKeys, err = configs.ParseGossipKeys(text)
	return cfg, err
}

func (g *guest) run(ctx context.Context) (err error) {
	g.log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g.res.url = g.setup.Resource
	if g.out, err = os.OpenFile(filepath.Join(g.setup.Dir, g.setup.Node+".notes"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	cfg, err := g.config()
	if err != nil {
		return err
	}
	if g.group, err = gms.New(cfg); err != nil {
		return err
	}
	manager, err := recovery.ForGroup(g.group, recovery.Options{Logger: g.log})
	if err != nil {
		return err
	}
	if err := g.group.Router().AddRecoveryFactory(jobs, signals.HandleRecovery(g.recover)); err != nil {
		return err
	}
	if err := errors.Join(g.group.Start(ctx), manager.Start(ctx)); err != nil {
		return err
	}
	rng := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(g.setup.Seed, uint64(os.Getpid())<<8+n)) }
	var all sync.WaitGroup
	all.Go(func() { g.views(ctx) })
	all.Go(func() { g.work(ctx, manager, rng(1)) })
	for i := range uint64(2) {
		all.Go(func() { g.client(ctx, rng(2+i), g.cacheOnce) })
		all.Go(func() { g.client(ctx, rng(4+i), g.lockOnce) })
	}
	select {
	case <-ctx.Done():
	case <-g.over():
	}
	if ctx.Err() != nil {
		all.Wait()
	}
	manager.Stop()
	polite, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, run := g.group.Self()
	if err := errors.Join(g.group.Err(), g.group.Stop(polite, jobs)); err != nil {
		return err
	}
	g.note(note{Kind: "left", T: monotonic(), Run: run}) // whatever is left is seen in the log
	return nil
}

// over is closed when the group has failed.
func (g *guest) over() <-chan struct{} {
	done := make(chan struct{})
	go func() { // ends with the group, or with the process
		for g.group.Err() == nil {
			<-g.group.Changed()
		}
		close(done)
	}()
	return done
}

// note writes down. A line is one write, so that a process that is killed leaves whole lines.
func (g *guest) note(n note) {
	line, err := json.Marshal(n)
	if err == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		_, err = g.out.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// holds writes down that something is held, if that is certain: the clock is read before the lease is looked at, and it is
// the lease of the run that was given it.
func (g *guest) holds(run, what string, token uint64, valid context.Context) {
	at := monotonic()
	standing, _ := g.group.Standing()
	if _, now := g.group.Self(); standing == gms.Held && now == run && valid.Err() == nil {
		g.note(note{Kind: "hold", T: at, Run: run, What: what, Token: token})
	}
}

// views writes down each view that comes.
func (g *guest) views(ctx context.Context) {
	last := uint64(0)
	for ctx.Err() == nil {
		list, gap := g.group.ViewsSince(last)
		for _, v := range list {
			n := note{Kind: "view", T: monotonic(), Version: v.Version, Gap: gap || last == 0, Runs: []string{}}
			for _, m := range v.Members {
				n.Runs = append(n.Runs, m.Node+"/"+m.Run)
			}
			g.note(n)
			last, gap = v.Version, false
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// work takes jobs while a run of this process stands.
func (g *guest) work(ctx context.Context, manager *recovery.Manager, rng *rand.Rand) {
	for ctx.Err() == nil {
		if errors.Join(g.group.AwaitStanding(ctx), manager.AwaitUnfenced(ctx, jobs)) != nil {
			pause(ctx, 100*time.Millisecond)
			continue
		}
		standing, ok := g.group.RunContext()
		if !ok {
			continue
		}
		for ctx.Err() == nil && standing.Err() == nil {
			// Which jobs there are depends on the time, so that all meet, and that one which killed too many ends.
			g.job(standing, fmt.Sprintf("j%d.%d", rng.IntN(3), monotonic()/(20*time.Second)), rng)
			pause(ctx, time.Duration(rng.IntN(300))*time.Millisecond)
		}
	}
}

// job works on one, if nobody else does.
func (g *guest) job(ctx context.Context, item string, rng *rand.Rand) {
	_, run := g.group.Self()
	claim, err := g.group.Claim(ctx, jobs, item, 1)
	if err != nil {
		return
	}
	writes := 2 + rng.IntN(6)
	if rng.IntN(4) == 0 {
		writes += 30 // for longer than any lease lasts
	}
	for range writes {
		g.holds(run, "job "+item, claim.Token, ctx)
		if err := g.res.send(ctx, write{Item: item, Run: run, Token: claim.Token}); errors.Is(err, errOld) {
			break
		}
		pause(ctx, time.Duration(rng.IntN(600))*time.Millisecond)
	}
	for ctx.Err() == nil { // a claim is the run's until it has ended: whoever gives up here leaves it behind
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := g.group.EndClaim(limited, claim, signals.Abandon)
		cancel()
		if !errors.Is(err, gms.ErrUnknown) && !errors.Is(err, gms.ErrNoQuorum) {
			break
		}
		g.log.Warn("claim not ended", "item", item, "error", err)
	}
}

// recover takes the jobs of a dead run away from it and gives them to all.
func (g *guest) recover(ctx context.Context, s signals.FailureRecoverySignal) error {
	a := s.Appointment()
	_, run := g.group.Self()
	what := fmt.Sprintf("fence %s/%s/%s", a.Component, a.Node, a.Run)
	done := g.call(note{Op: "raise", What: what, Run: run})
	fence, err := s.Acquire(ctx)
	if err != nil {
		done(note{Outcome: "unknown"})
		return err
	}
	done(note{Outcome: "ok", Version: fence.Token()})
	ctx = fence.Context()
	orphans, err := fence.Orphans(ctx)
	if err != nil {
		return err
	}
	for _, o := range orphans {
		g.holds(run, what, fence.Token(), ctx)
		switch err := g.res.send(ctx, write{Item: o.Item, Run: a.Run, Token: fence.Token(), ShutOut: true}); {
		case errors.Is(err, errOld):
			return err // there is a newer recoverer, and this one will be told
		case err != nil:
			return fmt.Errorf("%w: %w", signals.ErrUnavailable, err)
		}
		pause(ctx, time.Duration(len(o.Item)%4)*100*time.Millisecond)
		g.holds(run, what, fence.Token(), ctx)
		err := fence.Free(ctx, o)
		if errors.Is(err, signals.ErrPoison) {
			err = fence.End(ctx, o.Claim, signals.Quarantine)
		}
		if err != nil {
			return err
		}
	}
	g.holds(run, what, fence.Token(), ctx)
	done = g.call(note{Op: "release", What: what, Version: fence.Token()})
	if err := s.Release(ctx); err != nil {
		done(note{Outcome: "unknown"})
		return err
	}
	done(note{Outcome: "ok"})
	return nil
}

// client does one thing after the other.
func (g *guest) client(ctx context.Context, rng *rand.Rand, once func(context.Context, *rand.Rand)) {
	for ctx.Err() == nil && g.group.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, time.Duration(500+rng.IntN(2500))*time.Millisecond)
		once(limited, rng)
		cancel()
		pause(ctx, time.Duration(50+rng.IntN(400))*time.Millisecond)
	}
}

// call writes down that an operation begins; the function that it returns, how it ended.
func (g *guest) call(n note) (done func(note)) {
	g.mu.Lock()
	g.next++
	n.ID = uint64(os.Getpid())<<32 + g.next
	g.mu.Unlock()
	n.Kind, n.T = "call", monotonic()
	g.note(n)
	return func(end note) {
		end.Kind, end.T, end.ID, end.Op, end.What = "return", monotonic(), n.ID, n.Op, n.What
		g.note(end)
	}
}

func (g *guest) cacheOnce(ctx context.Context, rng *rand.Rand) {
	cache, key := g.group.Cache(), gms.Key{Component: "app", Key: fmt.Sprint("key ", rng.IntN(3))}
	done := g.call(note{Op: "read", What: key.Key})
	e, err := cache.Get(ctx, key)
	switch {
	case err == nil:
		done(note{Outcome: "ok", Value: string(e.Value), Version: e.Version})
	case errors.Is(err, gms.ErrNotFound):
		done(note{Outcome: "none"})
	default:
		done(note{Outcome: "no"})
		return
	}
	value := fmt.Sprintf("%s %d %d", g.setup.Node, os.Getpid(), monotonic())
	n, t := note{Op: "put", What: key.Key, Value: value}, gms.Txn{Puts: []gms.Put{{Key: key, Value: []byte(value)}}}
	if rng.IntN(2) == 0 {
		n.Op, n.Version, t.Conditions = "swap", e.Version, []gms.Condition{gms.VersionIs(key, e.Version)}
	}
	done = g.call(n)
	version, err := cache.Commit(ctx, t)
	switch {
	case err == nil:
		done(note{Outcome: "ok", Version: version})
	case errors.Is(err, gms.ErrConflict):
		done(note{Outcome: "no"})
	default:
		done(note{Outcome: "unknown"})
	}
}

func (g *guest) lockOnce(ctx context.Context, rng *rand.Rand) {
	_, run := g.group.Self()
	name := fmt.Sprint("lock ", rng.IntN(2))
	done := g.call(note{Op: "lock", What: name, Run: run})
	l, err := g.group.WaitLock(ctx, name)
	if err != nil {
		done(note{Outcome: "unknown"}) // what it may get is given back
		return
	}
	done(note{Outcome: "ok", Version: l.Token})
	for range rng.IntN(4) {
		g.holds(run, name, l.Token, l.Context())
		pause(ctx, time.Duration(rng.IntN(200))*time.Millisecond)
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	done = g.call(note{Op: "unlock", What: name, Version: l.Token})
	if err := g.group.Unlock(limited, l); err != nil {
		done(note{Outcome: "unknown"})
		return
	}
	done(note{Outcome: "ok", Version: l.Token})
}

// readNotes reads what a host app wrote down.
func readNotes(file string) (list []note, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var n note
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			if !strings.HasSuffix(line, "\n") {
				break // it was killed while it wrote
			}
			return nil, fmt.Errorf("%s: %w: %s", file, err, line)
		}
		list = append(list, n)
	}
	return list, nil
}
