package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// Times of the fake group.
const (
	fakeRenewal     = time.Second
	fakeFenceTTL    = 8 * time.Second
	fakeMargin      = time.Second
	fakeMaxAttempts = 3
)

// fakeGroup is a group with a log of one entry per call: what PROTOCOL.md says about appointments, in memory. Each of
// its members has a view of its own on it (member).
type fakeGroup struct {
	t  *testing.T
	mu sync.Mutex

	members  []string // candidates, in the selector's order
	position uint64
	token    uint64
	recs     map[key]*fakeRecovery
	down     bool // no quorum
	wait     time.Duration
	pause    time.Duration  // before the first delivery of an appointment
	latency  time.Duration  // of a command
	leases   map[string]int // fences being renewed, by member
	changed  chan struct{}
	releases map[key]int
	calls    []string // what reached the log, in order
}

type fakeRecovery struct {
	ref       Ref
	appointee string // empty: parked
	raised    bool
	token     uint64
	failures  uint32
	tried     map[string]bool
	orphans   map[string]signals.Orphan
	adopted   map[string]signals.Claim
	renewed   time.Time // by the leader's clock: last renewal, or the appointment
	closed    time.Time
	quiesced  bool
	why       []string
}

func newFakeGroup(t *testing.T, members ...string) *fakeGroup {
	return &fakeGroup{
		t: t, members: members, position: 100, token: 1000, recs: make(map[key]*fakeRecovery),
		changed: make(chan struct{}), releases: make(map[key]int),
		leases: make(map[string]int),
	}
}

// close closes the run of node, which left orphans in component.
func (g *fakeGroup) close(component, node, run string, items ...string) key {
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := &fakeRecovery{
		ref: Ref{Component: component, Node: node, Run: run}, tried: make(map[string]bool),
		orphans: make(map[string]signals.Orphan), adopted: make(map[string]signals.Claim), closed: time.Now(),
	}
	for i, item := range items {
		rec.orphans[item] = signals.Orphan{
			Claim:      signals.Claim{Component: component, Item: item, RoundTrip: 1, Token: uint64(i + 1)},
			Orphanings: 1,
		}
	}
	g.recs[rec.ref.key()] = rec
	g.appoint(rec)
	return rec.ref.key()
}

// appoint chooses the first that has not tried, at a new index; everything adopted is an orphan again.
func (g *fakeGroup) appoint(rec *fakeRecovery) {
	g.position++
	rec.ref.Index, rec.appointee, rec.raised, rec.failures, rec.renewed = g.position, "", false, 0, time.Now()
	for item, c := range rec.adopted {
		rec.orphans[item] = signals.Orphan{Claim: c, Orphanings: c.RoundTrip}
		delete(rec.adopted, item)
	}
	for _, m := range g.members {
		if !rec.tried[m] {
			rec.appointee = m
			break
		}
	}
	g.signal()
}

// handOver moves the appointment, the present appointee having tried.
func (g *fakeGroup) handOver(k key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.recs[k].tried[g.recs[k].appointee] = true
	g.appoint(g.recs[k])
}

// leave closes the run of a member: what it was appointed to goes to the next.
func (g *fakeGroup) leave(member string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = slices.DeleteFunc(slices.Clone(g.members), func(m string) bool { return m == member })
	for _, rec := range g.recs {
		if rec.appointee == member {
			g.appoint(rec)
		}
	}
}

func (g *fakeGroup) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *fakeGroup) setDown(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
	g.signal()
}

// look is a copy of a recovery; false: it has ended.
func (g *fakeGroup) look(k key) (fakeRecovery, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rec, ok := g.recs[k]
	if !ok {
		return fakeRecovery{}, false
	}
	out := *rec
	out.orphans, out.adopted = maps.Clone(rec.orphans), maps.Clone(rec.adopted)
	out.why = slices.Clone(rec.why)
	return out, true
}

func (g *fakeGroup) released(k key) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.releases[k]
}

// lead moves appointments that are not renewed in time, like the leader, until ctx ends.
func (g *fakeGroup) lead(ctx context.Context) {
	for pause(ctx, fakeRenewal/4) {
		g.mu.Lock()
		for _, rec := range g.recs {
			if !g.down && rec.appointee != "" && time.Since(rec.renewed) > fakeFenceTTL {
				rec.tried[rec.appointee] = true
				g.appoint(rec)
			}
		}
		g.mu.Unlock()
	}
}

// member is the log as that member sees it.
func (g *fakeGroup) member(name string) *fakeLog { return &fakeLog{g: g, name: name} }

type fakeLog struct {
	g    *fakeGroup
	name string
}

var _ Log = (*fakeLog)(nil)

func (l *fakeLog) Recoveries() ([]Appointed, <-chan struct{}) {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	var list []Appointed
	for _, rec := range l.g.recs {
		if rec.appointee == l.name {
			list = append(list, Appointed{Ref: rec.ref, Failures: rec.failures, Pause: l.g.pause, Facts: signals.Facts{
				Group: "test", Evidence: signals.Refused, Member: signals.Member{Node: rec.ref.Node, Run: rec.ref.Run},
			}})
		}
	}
	return list, l.g.changed
}

func (g *fakeGroup) leasesOf(member string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leases[member]
}

func (g *fakeGroup) countLease(member string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leases[member] += n
}

// enter locks, which the caller undoes, and checks what every command checks.
func (l *fakeLog) enter(ctx context.Context, call string, ref Ref) (*fakeRecovery, error) {
	if l.g.latency > 0 {
		pause(ctx, l.g.latency)
	}
	l.g.mu.Lock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.g.calls = append(l.g.calls, l.name+" "+call)
	if l.g.down {
		return nil, fmt.Errorf("%s: no quorum: %w", call, signals.ErrUnavailable)
	}
	rec := l.g.recs[ref.key()]
	if rec == nil || rec.appointee != l.name || rec.ref.Index != ref.Index {
		return nil, fmt.Errorf("%s: %w", call, signals.ErrNotAppointed)
	}
	return rec, nil
}

func (l *fakeLog) Acquire(ctx context.Context, ref Ref) (Grant, error) {
	rec, err := l.enter(ctx, "acquire", ref)
	defer l.g.mu.Unlock()
	if err != nil {
		return Grant{}, err
	}
	if !rec.raised {
		l.g.token++
		rec.raised, rec.token = true, l.g.token
	}
	rec.renewed = time.Now()
	return Grant{Held: Held{Ref: rec.ref, Token: rec.token}}, nil
}

func (l *fakeLog) Former(ref Ref) (time.Duration, <-chan struct{}) {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	rec := l.g.recs[ref.key()]
	if rec == nil || rec.quiesced {
		return 0, nil
	}
	return time.Until(rec.closed.Add(l.g.wait)), l.g.changed
}

// quiesce proves that nothing of the dead run is left.
func (g *fakeGroup) quiesce(k key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.recs[k].quiesced = true
	g.signal()
}

func (l *fakeLog) Release(ctx context.Context, held Held) error {
	return l.under(ctx, "release", held, func(rec *fakeRecovery) error {
		if n := len(rec.orphans); n > 0 {
			return fmt.Errorf("%d orphans: %w", n, signals.ErrWorkLeft)
		}
		delete(l.g.recs, held.key())
		l.g.releases[held.key()]++
		l.g.signal()
		return nil
	})
}

func (l *fakeLog) FailRecovery(ctx context.Context, ref Ref, f Failure) error {
	rec, err := l.enter(ctx, "fail", ref)
	defer l.g.mu.Unlock()
	if err != nil {
		return err
	}
	rec.why = append(rec.why, f.Why)
	if f.Unavailable {
		l.g.members = append(slices.DeleteFunc(slices.Clone(l.g.members), func(m string) bool { return m == l.name }), l.name)
		l.g.appoint(rec)
		return nil
	}
	rec.failures++
	if rec.failures >= fakeMaxAttempts {
		rec.tried[l.name] = true
		l.g.appoint(rec)
	}
	l.g.signal()
	return nil
}

// Renew ticks in the bubble's time, on a goroutine that ends with stop or with the lease.
func (l *fakeLog) Renew(grant Grant, due func() bool) (context.Context, func()) {
	lease, end := context.WithCancelCause(context.Background())
	stop := make(chan struct{})
	sent := time.Now()
	l.g.countLease(l.name, 1)
	go func() {
		tick := time.NewTicker(fakeRenewal)
		defer tick.Stop()
		for time.Since(sent) < fakeFenceTTL-fakeMargin {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if due() && l.renewed(grant.Held) {
				sent = time.Now()
			}
		}
		end(fmt.Errorf("not renewed since %v", sent))
	}()
	return lease, sync.OnceFunc(func() { close(stop); l.g.countLease(l.name, -1) })
}

func (l *fakeLog) renewed(held Held) bool {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	rec := l.g.recs[held.key()]
	if l.g.down || rec == nil || rec.ref.Index != held.Index || rec.appointee != l.name {
		return false
	}
	rec.renewed = time.Now()
	return true
}

// under does what is done under a fence.
func (l *fakeLog) under(ctx context.Context, call string, held Held, do func(*fakeRecovery) error) error {
	rec, err := l.enter(ctx, call, held.Ref)
	defer l.g.mu.Unlock()
	if err != nil {
		return err
	}
	if !rec.raised || rec.token != held.Token {
		return fmt.Errorf("%s: %w", call, signals.ErrFenceLost)
	}
	return do(rec)
}

func (l *fakeLog) Orphans(ctx context.Context, held Held) (list []signals.Orphan, err error) {
	err = l.under(ctx, "orphans", held, func(rec *fakeRecovery) error {
		for _, item := range slices.Sorted(maps.Keys(rec.orphans)) {
			list = append(list, rec.orphans[item])
		}
		return nil
	})
	return list, err
}

func (l *fakeLog) Adopt(ctx context.Context, held Held, o signals.Orphan) (c signals.Claim, err error) {
	err = l.under(ctx, "adopt", held, func(rec *fakeRecovery) error {
		l.g.token++
		c = o.Claim
		c.RoundTrip, c.Token = c.RoundTrip+1, l.g.token
		delete(rec.orphans, o.Item)
		rec.adopted[o.Item] = c
		return nil
	})
	return c, err
}

func (l *fakeLog) EndClaim(ctx context.Context, held Held, c signals.Claim, how signals.How) error {
	return l.under(ctx, string(how), held, func(rec *fakeRecovery) error {
		delete(rec.orphans, c.Item)
		delete(rec.adopted, c.Item)
		return nil
	})
}

func (l *fakeLog) Fenced(_ context.Context, component, node string) (bool, <-chan struct{}, error) {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	if l.g.down {
		return false, nil, signals.ErrUnavailable
	}
	for _, rec := range l.g.recs {
		if rec.ref.Component == component && rec.ref.Node == node {
			return true, l.g.changed, nil
		}
	}
	return false, l.g.changed, nil
}
