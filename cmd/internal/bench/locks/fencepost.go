package locks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// MemberKind is the name under which a program's Main finds Member.
const MemberKind = "member"

// memberConfig is what a member's process is told.
type memberConfig struct {
	Node, Home, Gossip, Cluster string
	Bootstrap, Seeds            []string
}

// Member is the Kind of one member of the group.
func Member(ctx context.Context, config []byte, ready func()) error {
	var c memberConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	g, err := gms.New(gms.Config{
		Group: "bench", Node: c.Node, Home: c.Home, Bootstrap: c.Bootstrap, Seeds: c.Seeds,
		Gossip: gms.Endpoint{Bind: c.Gossip}, Cluster: gms.Endpoint{Bind: c.Cluster},
	})
	if err != nil {
		return err
	}
	if err := g.Start(ctx); err != nil {
		return err
	}
	if err := g.AwaitStanding(ctx); err != nil {
		return errors.Join(err, stopGroup(g))
	}
	ready()
	<-ctx.Done()
	return stopGroup(g)
}

func stopGroup(g *gms.Group) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return g.Stop(ctx, "measured")
}

// Fencepost is a group of three members, and this process as its spectator: it sees all, votes on nothing and keeps no log,
// as the clients of other services.
type Fencepost struct {
	group   *gms.Group
	members func() error
}

// StartFencepost starts the members, with homes below dir, and joins them. The program's Main must know MemberKind.
func StartFencepost(ctx context.Context, dir string) (*Fencepost, error) {
	at, err := FreeAddresses(8)
	if err != nil {
		return nil, err
	}
	names, gossip, cluster := []string{"n1", "n2", "n3"}, at[:4], at[4:]
	var configs []memberConfig
	for i, name := range names {
		configs = append(configs, memberConfig{
			Node: name, Home: filepath.Join(dir, name), Gossip: gossip[i], Cluster: cluster[i], Bootstrap: names, Seeds: gossip[:3],
		})
	}
	stop, err := SpawnAll(MemberKind, configs)
	if err != nil {
		return nil, err
	}
	g, err := gms.New(gms.Config{
		Group: "bench", Node: "clients", Home: filepath.Join(dir, "clients"), Role: signals.Spectator, Seeds: gossip[:3],
		Gossip: gms.Endpoint{Bind: gossip[3]}, Cluster: gms.Endpoint{Bind: cluster[3]},
	})
	if err == nil {
		err = g.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("join the members: %w", err), stop())
	}
	f := &Fencepost{group: g, members: stop}
	if err := g.AwaitStanding(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("join the members: %w", err), f.Stop())
	}
	return f, nil
}

// Stop ends the members, and this process's part in the group.
func (f *Fencepost) Stop() error { return errors.Join(stopGroup(f.group), f.members()) }

// Client is a Service's: poll locks know no sessions but the process's run.
func (f *Fencepost) Client(context.Context) (Client, error) { return lockClient{f.group}, nil }

type lockClient struct{ group *gms.Group }

func (c lockClient) TryLock(ctx context.Context, name string) (Unlock, error) {
	return c.unlock(c.group.TryLock(ctx, name))
}

func (c lockClient) Lock(ctx context.Context, name string) (Unlock, error) {
	return c.unlock(c.group.WaitLock(ctx, name))
}

func (c lockClient) unlock(l gms.Lock, err error) (Unlock, error) {
	return func(ctx context.Context) error { return c.group.Unlock(ctx, l) }, err
}

func (c lockClient) Close() error { return nil }

// Fences is the Service of the same group whose locks are maintenance fences: each on a component of its own.
func (f *Fencepost) Fences() Service { return fences{f.group} }

type fences struct{ group *gms.Group }

func (f fences) Client(context.Context) (Client, error) { return f, nil }

// TryLock raises a fence, and the Unlock lowers it.
func (f fences) TryLock(ctx context.Context, name string) (Unlock, error) {
	const node = "n1"
	token, err := f.group.RaiseFence(ctx, name, node)
	return func(ctx context.Context) error { return f.group.LowerFence(ctx, name, node, token) }, err
}

// Lock is refused: nobody waits for a maintenance fence.
func (f fences) Lock(_ context.Context, name string) (Unlock, error) {
	return nil, fmt.Errorf("%w: wait for the fence on %s", errors.ErrUnsupported, name)
}

func (f fences) Close() error { return nil }
