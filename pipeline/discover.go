package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost/fencepost/pipeline/component"
	"github.com/fencepost/fencepost/pipeline/source"
)

// DiscoverComponent asks servers which databases they have; its items are the servers.
const DiscoverComponent = "discover"

// serverItems is the type of its items.
const serverItems = "server"

// DiscoverEvery is how long after a look at a server it is asked again.
const DiscoverEvery = time.Hour

// A Lister is a Source that can tell which databases its server has.
type Lister interface {
	// Databases are the names of those that can be dumped: no templates, none that takes no connections.
	Databases(ctx context.Context, a source.Attempt) ([]string, error)
}

// notedItems are items that this process has made, or found: they are not asked for again.
type notedItems struct{ ids sync.Map }

// put makes an item, if this process has not made it before.
func (n *notedItems) put(ctx context.Context, items component.Items, it component.Item) error {
	if _, ok := n.ids.Load(it.ID); ok {
		return nil
	}
	if _, err := items.Put(ctx, it, false); err != nil {
		return err
	}
	n.ids.Store(it.ID, true)
	return nil
}

func (n *notedItems) forget(id string) { n.ids.Delete(id) }

// Discoverer has one node at a time ask each server which databases it has, and another when that one dies. What becomes of
// the answer is the host's to say.
type Discoverer struct {
	items   component.Items
	note    func(ctx context.Context, server string, names []string, problem error) error
	now     func() time.Time
	servers atomic.Pointer[map[string]Lister]
	noted   notedItems
}

// NewDiscoverer makes one that knows no server yet. note is told of each look, of one that failed too; it may block until
// its context ends, and an error of it has the server asked again soon.
func NewDiscoverer(items component.Items, now func() time.Time, note func(ctx context.Context, server string, names []string, problem error) error) *Discoverer {
	d := &Discoverer{items: items, note: note, now: now}
	d.servers.Store(&map[string]Lister{})
	return d
}

// Renew has the discoverer ask these servers from now on, by name: those that this node can reach. It keeps what it is given.
func (d *Discoverer) Renew(servers map[string]Lister) { d.servers.Store(&servers) }

func serverItem(name string) string { return serverItems + ":" + name }

// Begin makes the items of the servers that nobody knew yet. Called before the component starts, and after Renew.
func (d *Discoverer) Begin(ctx context.Context) error {
	for name := range *d.servers.Load() {
		if err := d.noted.put(ctx, d.items, component.Item{Type: serverItems, ID: serverItem(name)}); err != nil {
			return fmt.Errorf("note server %s: %w", name, err)
		}
	}
	return nil
}

// Component fills in what is the discoverer's of the configuration of its component; the caller adds the group's side.
func (d *Discoverer) Component() component.Config {
	again := rounds{d.items, serverItems, DiscoverEvery, &sync.Map{}, true}
	return component.Config{
		Component: DiscoverComponent, Trigger: component.Trigger{Types: []string{serverItems}}, NoEvent: true, Peek: true, Every: time.Minute, Limit: 10 * time.Minute,
		SimultaneousProcesses: 4, Able: func(it component.Item) bool { return (*d.servers.Load())[nameAfter(it)] != nil },
		Worker: component.Func(d.work), Index: again, Store: again, Now: d.now,
		Fairness: component.Fairness{BackOff: time.Minute, MaxBackOff: DiscoverEvery, QuarantineAfter: -1},
	}
}

func (d *Discoverer) work(ctx context.Context, j component.Job) (report component.Report, err error) {
	name := nameAfter(j.Item)
	server := (*d.servers.Load())[name]
	if server == nil {
		return report, errors.New("the server is not known here any more")
	}
	names, err := server.Databases(ctx, source.Attempt{Task: NewID(d.now()), Token: j.Token})
	if err != nil && ctx.Err() != nil {
		return report, err
	}
	return report, errors.Join(err, d.note(ctx, name, names, err))
}

// LookNow has a server be asked at the next opportunity, whenever it was asked last.
func (d *Discoverer) LookNow(ctx context.Context, name string) error {
	if (*d.servers.Load())[name] == nil {
		return unknown("server", "server", name, *d.servers.Load())
	}
	if err := d.items.Drop(ctx, serverItem(name)); err != nil {
		return err
	}
	d.noted.forget(serverItem(name))
	return d.Begin(ctx)
}
