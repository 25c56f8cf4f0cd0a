package gms_test

import (
	"context"
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
