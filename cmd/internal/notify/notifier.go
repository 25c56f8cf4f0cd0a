package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Pending is a message that one receiver has not got yet.
type Pending struct {
	Receiver string    `json:"receiver"`
	Message  Message   `json:"message"`
	Tries    int       `json:"tries"`
	Next     time.Time `json:"next"` // not before
	Error    string    `json:"error,omitempty"`
}

// ID names it in the store.
func (p Pending) ID() string { return p.Receiver + "/" + p.Message.ID }

// A Store is what all nodes share.
type Store interface {
	// Load reads the state with its version, 0 when there is none, and what is pending.
	Load(ctx context.Context) (s State, version uint64, out []Pending, err error)
	// Save replaces the state of that version and adds to what is pending, both or none; ErrChanged when somebody was faster.
	Save(ctx context.Context, s State, version uint64, add []Pending) error
	// Update notes a failed try, Remove that there will be none any more.
	Update(ctx context.Context, p Pending) error
	Remove(ctx context.Context, id string) error
}

// ErrChanged: another node has saved meanwhile.
var ErrChanged = errors.New("somebody else has told meanwhile")

// Telling is who is told of what. It can be renewed while a Notifier works.
type Telling struct {
	Rules     Rules
	Receivers []Receiver
	Beats     []Beat
}

// Beat is the address of an outside watcher, which is called every Every while all is well.
type Beat struct {
	Name string
	// URL may be a secret, and is asked for each time.
	URL   func() (string, error)
	Every time.Duration
}

// Config is how a Notifier works. All but Logger is required.
type Config struct {
	Telling // at first; see Renew
	Store   Store
	// May tells whether this node is the one that tells, and keeps it so while it is called again and again.
	May func(ctx context.Context) bool
	// Look is what there is now. It must end within a bounded time.
	Look func(ctx context.Context) (api.Overview, []api.Recovery)
	// Now is the group's time.
	Now    func() time.Time
	Logger *slog.Logger
}

const (
	lookEvery     = 5 * time.Second
	deliverWithin = 20 * time.Second
	firstRetry    = 10 * time.Second
	lastRetry     = time.Hour
	giveUpAfter   = 24 * time.Hour
)

// Notifier tells what there is to tell. Start begins, Stop ends and waits; Stop may come first and twice.
type Notifier struct {
	cfg    Config
	client *http.Client

	mu       sync.Mutex
	now      Telling
	problems map[string]string // of receivers, and of heartbeats
	cancel   context.CancelFunc
	stopped  bool
	running  sync.WaitGroup
}

// New makes one; nothing runs yet.
func New(c Config) *Notifier {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Notifier{cfg: c, client: &http.Client{}, now: c.Telling, problems: map[string]string{}}
}

// Renew has it tell otherwise from the next look on. What a receiver that is not there any more has not got yet, it does not get.
func (n *Notifier) Renew(t Telling) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = t
	maps.DeleteFunc(n.problems, func(name, _ string) bool {
		return !slices.ContainsFunc(t.Receivers, func(r Receiver) bool { return r.Name() == name }) && !slices.ContainsFunc(t.Beats, func(b Beat) bool { return b.problem() == name })
	})
}

func (n *Notifier) telling() Telling {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

func (n *Notifier) receivers() []Receiver { return n.telling().Receivers }

// Nobody tells whether there is nobody to tell anything.
func (n *Notifier) Nobody() bool {
	t := n.telling()
	return len(t.Receivers) == 0 && len(t.Beats) == 0
}

// problem is the name of a heartbeat among problems; no receiver has it.
func (b Beat) problem() string { return BeatPrefix + b.Name }

// BeatPrefix begins the names of heartbeats among Problems.
const BeatPrefix = "heartbeat "

// Start begins to look, until Stop or the end of ctx. Called once.
func (n *Notifier) Start(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped || n.cancel != nil {
		return
	}
	ctx, n.cancel = context.WithCancel(ctx)
	n.running.Go(func() { n.run(ctx) })
}

// Stop ends it, within the time that a delivery may take.
func (n *Notifier) Stop() {
	n.mu.Lock()
	n.stopped = true
	if n.cancel != nil {
		n.cancel()
	}
	n.mu.Unlock()
	n.running.Wait()
}

func (n *Notifier) run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	beats := map[string]time.Time{} // when each was called last
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if n.Nobody() || !n.cfg.May(ctx) {
			continue
		}
		o, recoveries := n.cfg.Look(ctx)
		if err := n.plan(ctx, o, recoveries); err != nil && ctx.Err() == nil {
			n.cfg.Logger.Warn("notify: what is to be told was not noted; it is tried again", "error", err)
		}
		n.deliver(ctx)
		if Alive(o) {
			n.beat(ctx, beats)
		}
	}
}

// plan notes what is to be told.
func (n *Notifier) plan(ctx context.Context, o api.Overview, recoveries []api.Recovery) error {
	before, version, _, err := n.cfg.Store.Load(ctx)
	if err != nil {
		return err
	}
	now := n.cfg.Now()
	t := n.telling()
	after, messages := Plan(before, t.Rules, Seen{Now: now, Alarms: o.Alarms, Recoveries: recoveries})
	if version != 0 && len(messages) == 0 && same(before, after) {
		return nil
	}
	var add []Pending
	for _, m := range messages {
		for _, r := range t.Receivers {
			if len(m.to) == 0 || slices.Contains(m.to, r.Name()) {
				add = append(add, Pending{Receiver: r.Name(), Message: m, Next: now})
			}
		}
	}
	return n.cfg.Store.Save(ctx, after, version, add)
}

// same tells whether nothing but words has changed: these need no write.
func same(a, b State) bool {
	return a.Ended == b.Ended && a.Begun == b.Begun && maps.EqualFunc(a.Alarms, b.Alarms, func(x, y *Told) bool {
		return x.Gone.Equal(y.Gone) && x.Last.Equal(y.Last) && x.Alarm.Severity == y.Alarm.Severity
	})
}

// deliver tries all that is due, each receiver on its own.
func (n *Notifier) deliver(ctx context.Context) {
	_, _, pending, err := n.cfg.Store.Load(ctx)
	if err != nil {
		return // it was said when the plan was made
	}
	var all sync.WaitGroup
	for _, r := range n.receivers() {
		all.Go(func() {
			for _, p := range pending {
				if p.Receiver == r.Name() && !n.try(ctx, r, p) {
					return // in their order, and a receiver that is away need not be asked for each
				}
			}
		})
	}
	all.Wait()
	n.sweep(ctx, pending)
}

// sweep removes what is for receivers that there are no more.
func (n *Notifier) sweep(ctx context.Context, pending []Pending) {
	for _, p := range pending {
		if !slices.ContainsFunc(n.receivers(), func(r Receiver) bool { return r.Name() == p.Receiver }) {
			_ = n.cfg.Store.Remove(ctx, p.ID()) // it is tried again at the next look
		}
	}
}

// try tells whether the next message may be tried.
func (n *Notifier) try(ctx context.Context, r Receiver, p Pending) bool {
	now := n.cfg.Now()
	if now.Before(p.Next) {
		return false
	}
	one, cancel := context.WithTimeout(ctx, deliverWithin)
	err := r.Deliver(one, p.Message)
	cancel()
	if err == nil {
		n.note(r.Name(), "")
		n.cfg.Logger.Info("notify: delivered", "receiver", r.Name(), "message", p.Message.ID, "title", p.Message.Title)
		return n.keep(n.cfg.Store.Remove(ctx, p.ID()))
	}
	if ctx.Err() != nil {
		return false
	}
	n.note(r.Name(), err.Error())
	p.Tries, p.Error, p.Next = p.Tries+1, err.Error(), now.Add(pause(p.Tries))
	if now.Sub(p.Message.At) >= giveUpAfter {
		n.cfg.Logger.Error("notify: a message was given up", "receiver", r.Name(), "message", p.Message.ID, "title", p.Message.Title, "error", err)
		return n.keep(n.cfg.Store.Remove(ctx, p.ID()))
	}
	n.cfg.Logger.Warn("notify: not delivered; it is tried again", "receiver", r.Name(), "message", p.Message.ID, "tries", p.Tries, "error", err)
	n.keep(n.cfg.Store.Update(ctx, p))
	return false
}

func (n *Notifier) keep(err error) bool {
	if err != nil {
		n.cfg.Logger.Warn("notify: what became of a message was not noted; it may come twice", "error", err)
	}
	return err == nil
}

// pause is how long to wait after so many tries before.
func pause(tries int) time.Duration {
	d := firstRetry
	for range tries {
		if d *= 2; d >= lastRetry {
			return lastRetry
		}
	}
	return d
}

// beat calls the outside watchers whose time has come, all at once; last is when each was called.
func (n *Notifier) beat(ctx context.Context, last map[string]time.Time) {
	var all sync.WaitGroup
	for _, b := range n.telling().Beats {
		if at, ok := last[b.Name]; ok && time.Since(at) < b.Every {
			continue
		}
		last[b.Name] = time.Now()
		all.Go(func() { n.call(ctx, b) })
	}
	all.Wait()
}

func (n *Notifier) call(ctx context.Context, b Beat) {
	ctx, cancel := context.WithTimeout(ctx, deliverWithin)
	defer cancel()
	err := n.reach(ctx, b)
	if err != nil {
		n.cfg.Logger.Warn("notify: the heartbeat was not sent", "heartbeat", b.Name, "error", err)
		n.note(b.problem(), err.Error())
		return
	}
	n.note(b.problem(), "")
}

func (n *Notifier) reach(ctx context.Context, b Beat) error {
	address, err := b.URL()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the url of the heartbeat is none")
	}
	return send(n.client, request)
}

func (n *Notifier) note(name, problem string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.problems, name)
	if problem != "" {
		n.problems[name] = problem
	}
}

// Problems is why the receivers that did not take their last message did not, by name.
func (n *Notifier) Problems() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.problems)
}

// Test delivers a test message to one receiver, "" for all, and says what became of each.
func (n *Notifier) Test(ctx context.Context, name string) (map[string]error, error) {
	out := map[string]error{}
	m := sample()
	m.ID, m.Group, m.At = fmt.Sprintf("%s-test-%d", n.cfg.Rules.Group, n.cfg.Now().UnixMilli()), n.cfg.Rules.Group, n.cfg.Now()
	m.Title = "[fencepost " + m.Group + "] a test of notifications"
	m.Alarms[0].Since = &m.At
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, r := range n.receivers() {
		if name != "" && r.Name() != name {
			continue
		}
		all.Go(func() {
			one, cancel := context.WithTimeout(ctx, deliverWithin)
			defer cancel()
			err := r.Deliver(one, m)
			mu.Lock()
			defer mu.Unlock()
			out[r.Name()] = err
		})
	}
	all.Wait()
	if name != "" && len(out) == 0 {
		return nil, &api.Error{Code: api.CodeNotFound, Message: "there is no receiver " + name, Hint: "hooks and mails of the group: fencepost setting ls; those of the node are in the section notify of its file"}
	}
	return out, nil
}
