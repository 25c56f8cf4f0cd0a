package gms_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// started starts a node that notes who joins, and stops it at the end of the test.
func started(t *testing.T, cfg gms.Config) (*gms.Group, <-chan signals.Facts) {
	t.Helper()
	g, err := gms.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	joins := make(chan signals.Facts, 100)
	if err := g.Router().AddActionFactory(signals.Handle(func(_ context.Context, s signals.Signal) error {
		joins <- s.Facts()
		return nil
	}), signals.JoinNotification); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := g.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := g.AwaitStanding(ctx); err != nil {
		t.Fatal(err)
	}
	return g, joins
}

// The configuration that works as it is: groups in one process that know nothing of each other, and a second node that
// joins one of them. Stop leaves no home behind.
func TestDefaultConfig(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Run("groups", func(t *testing.T) {
		one, _ := started(t, gms.DefaultConfig())
		other, othersJoins := started(t, gms.DefaultConfig())
		if one.ClusterID() == other.ClusterID() {
			t.Error("two groups have one id")
		}
		cfg := gms.DefaultConfig()
		cfg.Node, cfg.Seeds = "n2", []string{one.GossipAddress()}
		second, joins := started(t, cfg)
		if second.ClusterID() != one.ClusterID() {
			t.Error("the second node is in another group")
		}
		for range 2 {
			<-joins
		}
		if got := len(second.View().Members); got != 2 {
			t.Errorf("the second node sees %d members", got)
		}
		if got := (<-othersJoins).Member.Node; got != "n1" || len(othersJoins) > 0 || len(other.View().Members) != 1 {
			t.Errorf("the other group is told of %s, %d signals more, and sees %v", got, len(othersJoins), other.View().Members)
		}
		homes, err := filepath.Glob(filepath.Join(temp, "fencepost-*"))
		if err != nil || len(homes) != 3 {
			t.Errorf("homes %v, %v", homes, err)
		}
	})
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("Stop has left %v, %v", left, err)
	}
}

// A router that the host made is the host's to start and to stop.
func TestRouterOfTheHost(t *testing.T) {
	cfg := gms.DefaultConfig()
	cfg.Router = signals.NewRouter(signals.Options{})
	g, joins := started(t, cfg)
	if g.Router() != cfg.Router {
		t.Error("it is another router")
	}
	if len(joins) > 0 {
		t.Error("somebody has started it")
	}
	if err := cfg.Router.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer cfg.Router.Stop()
	if got := (<-joins).Member.Node; got != "n1" {
		t.Errorf("told of %s", got)
	}
}

// Every call that may wait ends with its context: here on a node whose group cannot form, since the other founder never comes.
func TestContextsAreRespected(t *testing.T) {
	cfg := gms.DefaultConfig()
	cfg.Bootstrap = []string{"n1", "n2"}
	g, err := gms.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Stop(context.Background()); err != nil { // nobody can be told; it does not wait for ever
			t.Error(err)
		}
	}()
	cause := errors.New("the host has changed its mind")
	k := gms.Key{Component: "c", Key: "k"}
	for name, call := range map[string]func(ctx context.Context) error{
		"AwaitStanding": g.AwaitStanding,
		"Sync":          g.Sync,
		"Claim":         func(ctx context.Context) error { _, err := g.Claim(ctx, "c", "i", 1); return err },
		"WaitLock":      func(ctx context.Context) error { _, err := g.WaitLock(ctx, "l"); return err },
		"TryLock":       func(ctx context.Context) error { _, err := g.TryLock(ctx, "l"); return err },
		"RaiseFence":    func(ctx context.Context) error { _, err := g.RaiseFence(ctx, "c", "n1"); return err },
		"SetDetail":     func(ctx context.Context) error { return g.SetDetail(ctx, "k", nil) },
		"SetReady":      func(ctx context.Context) error { return g.SetReady(ctx, true) },
		"Send":          func(ctx context.Context) error { return g.Send(ctx, "c", nil, "n2") },
		"Cache.Get":     func(ctx context.Context) error { _, err := g.Cache().Get(ctx, k); return err },
		"Cache.List":    func(ctx context.Context) error { _, err := g.Cache().List(ctx, "c", "", ""); return err },
		"Cache.Commit": func(ctx context.Context) error {
			_, err := g.Cache().Commit(ctx, gms.Txn{Deletes: []gms.Key{k}})
			return err
		},
		"Cache.Watch": func(ctx context.Context) error {
			for _, err := range g.Cache().Watch(ctx, "c", 0) {
				return err
			}
			return nil
		},
		"CloseRun": func(ctx context.Context) error {
			return g.CloseRun(ctx, "n2", "00112233445566778899aabbccddeeff", "test")
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- call(ctx) }()
		cancel(cause)
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s has done what cannot be done", name)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s does not end with its context", name)
		}
	}
}
