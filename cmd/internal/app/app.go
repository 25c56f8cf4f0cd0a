package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/metrics"
	"github.com/fencepost/fencepost/cmd/internal/notify"
	"github.com/fencepost/fencepost/cmd/internal/overview"
	"github.com/fencepost/fencepost/cmd/internal/settings"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/recovery"
	"github.com/fencepost/fencepost/recovery/warden"
	"github.com/fencepost/fencepost/signals"
)

// App is one node. Start, then wait for Done, then Stop.
type App struct {
	cfg     configs.Config
	version string
	log     *slog.Logger

	opened  opened
	ids     map[string]string // of the storages, as the group knows them; join's
	router  *signals.Router
	group   *gms.Group
	manager *recovery.Manager
	times   *times
	clock   *groupClock
	ticks   ticks
	seen    *overview.Keeper

	registry *prometheus.Registry
	metrics  *metrics.Metrics
	notifier *notify.Notifier
	told     atomic.Pointer[configs.Notify] // the section notify of the file, as it was read again; nil: as in cfg
	accounts *accounts.Accounts
	trail    *audit.Trail
	used     used
	settings *settings.Keeper
	fitting  sync.Mutex // one at a time makes an outfit

	mu       sync.Mutex
	state    string         // as api.Status.State
	fit      *outfit        // nil: of the file alone
	closers  []func() error // of storages of the settings
	work     *work          // nil until the node stands and its storages are checked
	err      error
	looked   bool                       // it has no work to begin, and stands
	reload   func() (api.Reload, error) // nil: it was not started from a file
	waits    error                      // what a node that is not ready waits for
	strange  error                      // what is wrong with the owners of its storages
	shelves  map[string]api.StorageState
	able     pipeline.Abilities
	uncopied error // why the audit trail is not copied to its disk
	aside    asideSeen
	cleanups []cleanup
	cancel   context.CancelFunc
	done     chan struct{}
	over     sync.Once // closes done
	joining  sync.WaitGroup
	stopOnce sync.Once
	stopErr  error

	patience    context.Context // ends when Stop is to wait for no work any more
	endPatience context.CancelFunc
}

// New checks that the configuration fits together. It opens nothing.
func New(cfg configs.Config, version string, log *slog.Logger) (*App, error) {
	return newBelow(nil, cfg, version, log)
}

// newBelow makes the node of a warden, nil for none: the warden may bury its first run, and each later one that it is told of.
func newBelow(child *warden.Child, cfg configs.Config, version string, log *slog.Logger) (*App, error) {
	a := &App{cfg: cfg, version: version, log: log, state: "starting", times: newTimes(), clock: newGroupClock(wall), done: make(chan struct{})}
	a.patience, a.endPatience = context.WithCancel(context.Background())
	a.router = signals.NewRouter(signals.Options{Logger: log})
	a.seen = overview.NewKeeper(time.Second, a.look)
	if err := a.newMetrics(); err != nil {
		return nil, err
	}
	gcfg, err := a.groupConfig()
	if err != nil {
		return nil, err
	}
	if child != nil {
		gcfg.Run, gcfg.WardenKey, gcfg.TellWarden = child.Run(), child.Key(), child.Stands
	}
	if a.group, err = gms.New(gcfg); err != nil {
		return nil, err
	}
	if a.notifier, err = a.newNotifier(); err != nil {
		return nil, err
	}
	store := groupStore{a}
	a.accounts = accounts.New(accounts.Config{Store: store, Now: a.clock.Now, Idle: cfg.Admin.SessionIdle, Max: cfg.Admin.SessionMax,
		Bound: func(user string) bool { return len(bindings{a}.Bound(user)) > 0 }})
	a.trail = audit.New(store, cfg.Node, a.clock.Now)
	a.settings = a.newSettings()
	a.manager, err = recovery.New(recovery.Options{
		Log: recovery.GroupLog(a.group), Router: a.router, Node: cfg.Node, Logger: log,
		MaxBackoff: min(5*time.Second, cfg.Recovery.FenceTTL/2),
	})
	return a, err
}

func (a *App) groupConfig() (gms.Config, error) {
	c := a.cfg
	timing, ok := gms.Profile(c.Profile).Timing()
	if !ok {
		return gms.Config{}, fmt.Errorf("profile: %q is unknown", c.Profile)
	}
	keys, err := c.Security.GossipKeys()
	if err != nil {
		return gms.Config{}, err
	}
	return gms.Config{
		GossipKeys: keys, Certificates: certificates(c), Details: map[string][]byte{versionDetail: []byte(a.version)},
		Group: c.Group, Node: c.Node, Home: c.Home, Role: signals.Role(c.Role), ReapAfter: c.Raft.ReapAfter, Bootstrap: c.Bootstrap, Seeds: c.Seeds,
		Gossip:  gms.Endpoint{Bind: c.Gossip.Bind, Advertise: c.Gossip.Advertise},
		Cluster: gms.Endpoint{Bind: c.Cluster.Bind, Advertise: c.Cluster.Advertise},
		Timing:  timing, Voters: c.Raft.Voters, Followers: c.Raft.Followers, SnapshotThreshold: uint64(c.Raft.SnapshotThreshold),
		FenceTTL: c.Recovery.FenceTTL, Selector: signals.Selector(c.Recovery.Selector),
		// One more than a task may be tried: a task's own limit decides first, this one stops what kills its recoverers.
		MaxAttempts: max(c.Recovery.MaxAttempts, c.Backup.MaxAttempts+1),
		NoRefused:   !c.Evidence.Refused, Floor: a.floor,
		Router: a.router, Logger: a.log,
	}, nil
}

// certificates are where the node's are; nil without any.
func certificates(c configs.Config) *certs.Source {
	if !c.Security.Certified() {
		return nil
	}
	return certs.Files(c.Security.CertificateFile, c.Security.KeyFile, c.Security.CAFile)
}

// Start opens what the configuration names, takes the home and the ports and answers on the admin socket; it returns when
// that is done, or with the first error and nothing left open. Joining the group goes on behind it: a node whose seeds do
// not answer keeps trying.
func (a *App) Start(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, a.down(context.WithoutCancel(ctx)))
		}
	}()
	if a.opened, err = openConfigured(a.cfg, a.log); err != nil {
		return err
	}
	for name, s := range a.opened.storages {
		a.opened.storages[name] = meter(s, name, a.metrics)
	}
	a.onStop("storages", func(context.Context) error { return errors.Join(a.opened.closeAll(), a.closeMore()) })
	if err := a.router.AddMessageFactory(clockComponent, signals.Handle(a.clock.hear)); err != nil {
		return err
	}
	if err := a.router.AddMessageFactory(components.YieldComponent, signals.Handle(a.hearYield)); err != nil {
		return err
	}
	if err := a.router.AddMessageFactory(drainComponent, signals.Handle(a.hearHandOver)); err != nil {
		return err
	}
	if err := a.router.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	a.onStop("signals", func(context.Context) error { a.router.Stop(); return nil })
	if err := a.group.Start(ctx); err != nil {
		return err
	}
	a.onStop("group", func(ctx context.Context) error { return a.group.Stop(ctx, a.components()...) })
	if err := a.openAdmin(); err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.cancel = cancel
	a.setState("joining")
	a.joining.Go(func() { a.watch(run) })
	a.joining.Go(func() { a.lookAfter(run) })
	a.joining.Go(func() { a.keepDrained(run) })
	a.joining.Go(func() { a.forgetRemoved(run) })
	a.joining.Go(func() { a.tellAlarms(run) })
	a.joining.Go(func() { a.countRecoveries(run) })
	a.joining.Go(func() { a.copyTrail(run) })
	a.joining.Go(func() { a.followSettings(run) })
	a.joining.Go(func() { a.keepState(run) })
	a.joining.Go(func() { a.times.watch(run, a.group) })
	a.joining.Go(func() { a.keepTime(run, a.ledgerClock) })
	a.joining.Go(func() {
		if err := a.join(run); err != nil && run.Err() == nil {
			a.fail(err)
		}
	})
	return nil
}

// join waits for standing and then begins to work.
func (a *App) join(ctx context.Context) error {
	if err := a.group.AwaitStanding(ctx); err != nil {
		return err
	}
	if a.cfg.Role != configs.RoleCore {
		return a.lookOn(ctx)
	}
	if err := addSigner(ctx, a.group, a.cfg.Node); err != nil {
		return fmt.Errorf("have the group know this node's key: %w", err)
	}
	if err := a.keepSigners(ctx); err != nil {
		return err
	}
	ids, err := addStorages(ctx, a.group, a.opened.storages, a.log)
	if err != nil {
		return err
	}
	a.ids = ids
	w, b, err := a.makeWork(ctx)
	if err != nil {
		return err
	}
	if err := a.tellAbilities(ctx); err != nil {
		return err
	}
	lasting := context.WithoutCancel(ctx) // these end by their own Stop, in order
	if err := b.worker.Start(lasting); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	a.onStop("worker", func(context.Context) error {
		defer context.AfterFunc(a.patience, w.worker.Hurry)()
		w.worker.Stop()
		return nil
	})
	for _, c := range a.components() {
		act := b.FreeOrphans
		switch {
		case ofTasks(c):
			act = b.recover
		case a.adopts(c):
			act = b.AdoptOrphans
		}
		if err := a.router.AddRecoveryFactory(c, signals.HandleRecovery(act), signals.WithProgress(components.RecoveryStep)); err != nil {
			return err
		}
	}
	if err := a.manager.Start(lasting); err != nil {
		return err
	}
	a.onStop("recoveries", func(context.Context) error { a.manager.Stop(); return nil })
	if err := a.group.AwaitRegistered(ctx, a.components()...); err != nil {
		return err
	}
	if err := a.startItemComponents(lasting, w, b); err != nil {
		return err
	}
	a.notifier.Start(lasting)
	a.onStop("notifications", func(context.Context) error { a.notifier.Stop(); return nil })
	a.mu.Lock()
	a.work = w
	a.mu.Unlock()
	a.joining.Go(func() { a.checkOwners(ctx) }) // what is wrong with them is not to be looked for a minute long
	return a.awaitFences(ctx)
}

// lookOn is all that a node does that is no core member: a spectator shows what there is and plans what others do.
func (a *App) lookOn(ctx context.Context) error {
	if a.cfg.Role == configs.RoleSpectator {
		if err := a.keepSigners(ctx); err != nil {
			return err
		}
		w, _, err := a.makeWork(ctx)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.work = w
		a.mu.Unlock()
	}
	a.mu.Lock()
	a.looked = true
	a.mu.Unlock()
	a.setState("ready")
	a.log.Info("app: ready", "role", string(a.cfg.Role))
	return a.tellReady(ctx)
}

// awaitFences says in the state and the log how long a restarted node waits for its former run's recoveries.
func (a *App) awaitFences(ctx context.Context) error {
	since := time.Now()
	a.setState("waiting at the fence")
	for _, c := range a.components() {
		fenced, err := a.manager.IsFenced(ctx, c, a.cfg.Node)
		if err == nil && fenced {
			a.log.Info("app: waiting at the fence", "recovers", c)
		}
		if err := a.manager.AwaitUnfenced(ctx, c); err != nil {
			return err
		}
	}
	a.setState("ready")
	a.log.Info("app: ready", "waited", time.Since(since).Round(time.Millisecond).String())
	return a.tellReady(ctx)
}

// watch ends the app when the group ends by itself.
func (a *App) watch(ctx context.Context) {
	for {
		changed := a.group.Changed()
		if err := errors.Join(a.group.Err(), a.group.DiskFull()); err != nil {
			a.fail(err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// reloadBy has operators' reloads done by reload.
func (a *App) reloadBy(reload func() (api.Reload, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reload = reload
}

func (a *App) setState(s string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state = s
}

func (a *App) stateNow() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}
