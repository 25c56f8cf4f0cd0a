package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	leaveLimit = 5 * time.Second // for each of the two pieces of news that this member leaves, if ctx has no earlier end
	metaLimit  = 5 * time.Second // for the news of a new meta, likewise
)

// Gossip is one member of the gossip group, for one run: it is started once, and after Leave or Stop a new one is made.
// Its methods may be called from any goroutine, except from within Admit.
type Gossip struct {
	cfg     Config
	meta    *metaDelegate
	members *table
	events  *queue
	blocked blocked

	mu      sync.Mutex // guards the life below
	list    *memberlist.Memberlist
	ring    *memberlist.Keyring // nil: not encrypted
	trans   *transport
	stopped bool
	ended   chan struct{} // closed when Stop is through

	stopping chan struct{}  // closed when Stop begins
	calls    sync.WaitGroup // calls into the library, which must end before its Shutdown
	saying   chan struct{}  // capacity 1: one change of what this member says of itself at a time
	left     bool           // guarded by saying
}

// New checks the configuration. It opens nothing and starts nothing.
func New(cfg Config) (*Gossip, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Gossip{
		cfg:      cfg.withDefaults(),
		meta:     &metaDelegate{},
		members:  newTable(),
		events:   newQueue(),
		ended:    make(chan struct{}),
		stopping: make(chan struct{}),
		saying:   make(chan struct{}, 1),
	}
	g.meta.set(cfg.Meta)
	return g, nil
}

// Start opens the sockets and begins to answer. The first event is this member's own Alive.
func (g *Gossip) Start(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.stopped:
		return ErrStopped
	case g.list != nil:
		return errors.New("gossip: started already")
	}
	trans, err := newTransport(ctx, g.cfg)
	if err != nil {
		return fmt.Errorf("start gossip: %w", err)
	}
	cfg, err := g.libraryConfig(trans)
	if err != nil {
		return errors.Join(err, trans.Shutdown())
	}
	list, err := memberlist.Create(cfg)
	if err != nil {
		return errors.Join(fmt.Errorf("start gossip: %w", err), trans.Shutdown())
	}
	g.list, g.trans = list, trans
	return nil
}

func (g *Gossip) libraryConfig(trans *transport) (*memberlist.Config, error) {
	t := g.cfg.Timing
	c := memberlist.DefaultLANConfig()
	c.Name, c.Label, c.Transport = g.cfg.Name, g.cfg.Label, trans
	c.BindAddr, c.BindPort = trans.advertise.Addr().String(), int(trans.advertise.Port())
	c.AdvertiseAddr, c.AdvertisePort = c.BindAddr, c.BindPort
	c.ProbeInterval, c.ProbeTimeout = t.ProbeInterval, t.ProbeTimeout
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = t.SuspicionMult, t.SuspicionMaxMult
	c.GossipInterval, c.PushPullInterval = t.GossipInterval, t.PushPullInterval
	c.GossipToTheDeadTime, c.TCPTimeout = t.GossipToTheDeadTime, t.StreamTimeout
	c.EnableCompression = false // a small packet must not become a large one
	c.GossipVerifyIncoming, c.GossipVerifyOutgoing = true, true
	c.Delegate = g.meta
	c.Events = &eventDelegate{members: g.members, events: g.events}
	c.Alive = &aliveDelegate{self: g.cfg.Name, admit: g.cfg.Admit, members: g.members}
	c.Conflict = &conflictDelegate{log: g.cfg.Logger}
	c.Logger = bridge(g.cfg.Logger, &g.blocked)
	if len(g.cfg.Keys) > 0 {
		ring, err := memberlist.NewKeyring(g.cfg.Keys, g.cfg.Keys[0])
		if err != nil {
			return nil, fmt.Errorf("make the gossip key ring: %w", err)
		}
		c.Keyring, g.ring = ring, ring
	}
	return c, nil
}

// enter gives the library to a caller, who must call done; Stop waits for it.
func (g *Gossip) enter() (list *memberlist.Memberlist, done func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.stopped:
		return nil, nil, ErrStopped
	case g.list == nil:
		return nil, nil, ErrNotStarted
	}
	g.calls.Add(1)
	return g.list, g.calls.Done, nil
}

// Addr is the IP:port that the others use; empty before Start.
func (g *Gossip) Addr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trans == nil {
		return ""
	}
	return g.trans.advertise.String()
}

// Next waits for the next event. It returns the cause of ctx's end, or [ErrStopped] when all events before Stop have been
// taken. A slow caller never holds gossip up; it sees fewer changes of a member, but always its last state, and always
// an end that lies in between.
func (g *Gossip) Next(ctx context.Context) (Event, error) { return g.events.next(ctx) }

// Members lists the living members, this one included, by name. They belong to the caller.
func (g *Gossip) Members() []Member { return g.members.list() }

// SetMeta replaces this member's meta and waits until the news is on its way, or ctx ends, or 5 s have passed; the meta
// is set in all cases but [ErrMetaTooLarge], [ErrLeft], [ErrStopped] and [ErrNotStarted].
func (g *Gossip) SetMeta(ctx context.Context, meta []byte) error {
	if err := checkMeta(meta); err != nil {
		return err
	}
	list, done, err := g.enter()
	if err != nil {
		return err
	}
	defer done()
	if err := g.speak(ctx); err != nil {
		return err
	}
	defer func() { <-g.saying }()
	if g.left {
		return ErrLeft
	}
	g.meta.set(meta)
	if err := list.UpdateNode(within(ctx, metaLimit)); err != nil {
		return fmt.Errorf("tell the new meta: %w", err)
	}
	return nil
}

// speak takes the turn to change what this member says of itself. It is not a mutex, since the one before may take seconds.
func (g *Gossip) speak(ctx context.Context) error {
	select {
	case g.saying <- struct{}{}:
		return nil
	case <-g.stopping:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func within(ctx context.Context, limit time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(end), time.Millisecond))
	}
	return limit
}

// Join exchanges all news with each of the addresses (host:port), all at once, each within StreamTimeout. It returns how
// many answered, and the errors of the others; it returns early when ctx ends. It may be called again and again.
func (g *Gossip) Join(ctx context.Context, addrs []string) (int, error) {
	list, done, err := g.enter()
	if err != nil {
		return 0, err
	}
	defer done()
	results := make(chan error, len(addrs))
	for _, a := range addrs {
		g.calls.Go(func() { results <- g.joinOne(ctx, list, a) })
	}
	joined := 0
	var errs []error
	for range addrs {
		select {
		case err := <-results:
			if err == nil {
				joined++
			} else {
				errs = append(errs, err)
			}
		case <-ctx.Done():
			return joined, errors.Join(append(errs, context.Cause(ctx))...)
		case <-g.stopping:
			return joined, errors.Join(append(errs, ErrStopped)...)
		}
	}
	return joined, errors.Join(errs...)
}

// joinAny asks all addresses of one host at once, and is content with the first that answers: dead ones cost nothing.
func (g *Gossip) joinAny(list *memberlist.Memberlist, ips []string, port string) error {
	results := make(chan error, len(ips))
	for _, ip := range ips {
		g.calls.Go(func() {
			_, err := list.Join([]string{net.JoinHostPort(ip, port)})
			results <- err
		})
	}
	var errs []error
	for range ips {
		err := <-results
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// joinOne resolves the address itself, since the library would ask one server after the other, and take the first answer
// of each host that works.
func (g *Gossip) joinOne(ctx context.Context, list *memberlist.Memberlist, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("join %s: %w", addr, err)
	}
	ips := []string{host}
	if _, err := netip.ParseAddr(host); err != nil {
		lookup, cancel := context.WithTimeout(ctx, g.cfg.Timing.StreamTimeout)
		defer cancel()
		if ips, err = g.cfg.Resolve(lookup, host); err != nil {
			return fmt.Errorf("join %s: %w", addr, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("join %s: %w", addr, context.Cause(ctx))
	}
	if err = g.joinAny(list, ips, port); err == nil {
		return nil
	}
	if why := strangeness(err.Error()); why != "" {
		return fmt.Errorf("join %s: %w: %s", addr, ErrStranger, why)
	}
	return fmt.Errorf("join %s: %w", addr, err)
}

// Leave tells the others that this member goes, for good, and still answers them for LeaveLinger. Whoever misses the first
// of the two pieces of news that this takes will see a death: a planned end is for the log to say. It returns early when
// ctx ends or Stop is called. The second call returns [ErrLeft]. Call Stop afterwards.
func (g *Gossip) Leave(ctx context.Context) error {
	list, done, err := g.enter()
	if err != nil {
		return err
	}
	defer done()
	if err := g.speak(ctx); err != nil {
		return err
	}
	defer func() { <-g.saying }()
	if g.left {
		return ErrLeft
	}
	g.left = true
	g.meta.set([]byte(leaveMark))
	if err := list.UpdateNode(within(ctx, leaveLimit)); err != nil {
		g.cfg.Logger.Info("the others may take this leave for a death", "error", err)
	}
	if err := list.Leave(within(ctx, leaveLimit)); err != nil {
		return fmt.Errorf("tell the others of leaving: %w", err)
	}
	select {
	case <-time.After(g.cfg.Timing.LeaveLinger):
	case <-ctx.Done():
	case <-g.stopping:
	}
	return nil
}

// Stop closes the sockets without a word: to the others this looks like a death, unless Leave came first. It may be
// called before Start and more than once, and waits until calls under way have ended and all is closed.
func (g *Gossip) Stop() {
	g.mu.Lock()
	if g.stopped {
		g.mu.Unlock()
		<-g.ended
		return
	}
	g.stopped = true
	list, trans := g.list, g.trans
	g.mu.Unlock()
	close(g.stopping)
	if list != nil {
		trans.interrupt()
		g.calls.Wait() // the library must not be told to leave after its end
		if err := list.Shutdown(); err != nil {
			g.cfg.Logger.Warn("shut gossip down", "error", err)
		}
	}
	g.events.close()
	close(g.ended)
}
