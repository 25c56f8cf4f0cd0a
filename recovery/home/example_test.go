package home_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fencepost/fencepost/recovery/home"
)

func tempDir() (string, func()) {
	dir, err := os.MkdirTemp("", "home")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "env"), func() { _ = os.RemoveAll(dir) }
}

// One process: it removes and makes the environment, cleans the databases, and serves.
func Example_singleProcess() {
	dir, remove := tempDir()
	defer remove()
	ctx := context.Background()
	create := func(_ context.Context, path string) error { return os.WriteFile(path, []byte("empty"), 0o600) }
	cfg := home.Config{Dir: dir, Clean: []home.Step{home.Recreate(filepath.Join(filepath.Dir(dir), "cache"), create)}}

	env, err := home.Open(ctx, cfg, home.JoinOptions{Label: "server"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("serves in generation", env.Generation())

	// A goroutine found the cache damaged. Everything that was open is thrown away first.
	fmt.Println(env.Fail("the cache is damaged"))
	if err := env.Recover(ctx, ""); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("serves in generation", env.Generation(), env.Check())
	fmt.Println("closed:", env.Close())
	// Output:
	// serves in generation 1
	// the environment has failed, run recovery: generation 1: the cache is damaged
	// serves in generation 2 <nil>
	// closed: <nil>
}

// A family: a watcher makes the environment and starts the workers (here goroutines, each with a seat of its own). When one
// of them ends it asks Failchk; on ErrRunRecovery it kills all, recovers and starts them again. Package warden does this with
// processes.
func Example_relatedProcesses() {
	dir, remove := tempDir()
	defer remove()
	ctx := context.Background()
	cfg := home.Config{Dir: dir}
	watcher, err := home.Take(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watcher.Close()
	for {
		gen, err := watcher.Recover(ctx, "a worker died")
		if err != nil {
			fmt.Println(err)
			return
		}
		worker, err := home.Join(ctx, cfg, home.JoinOptions{Label: "worker"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("a worker in generation", gen)
		if gen == 1 {
			_ = worker.Fail("out of memory")
		}
		_ = worker.Close() // it ends
		if _, err := watcher.Failchk(); !errors.Is(err, home.ErrRunRecovery) {
			break
		}
	}
	fmt.Println("retired:", watcher.Retire(ctx))
	// Output:
	// a worker in generation 1
	// a worker in generation 2
	// retired: <nil>
}

// Unrelated processes: the seal is what lets them in. Whoever comes while there is none waits.
func Example_unrelatedProcesses() {
	dir, remove := tempDir()
	defer remove()
	ctx := context.Background()
	cfg := home.Config{Dir: dir}
	_, err := home.Join(ctx, cfg, home.JoinOptions{})
	fmt.Println("too early:", errors.Is(err, home.ErrNotSealed))

	done := make(chan struct{})
	go func() {
		defer close(done)
		visitor, err := home.Join(ctx, cfg, home.JoinOptions{Wait: true, ReadOnly: true})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer visitor.Close()
		fmt.Println("inside, in generation", visitor.Generation())
		<-visitor.Failed()
		fmt.Println(visitor.Check())
	}()
	watcher, err := home.Take(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watcher.Close()
	if _, err := watcher.Recover(ctx, "the machine was started"); err != nil {
		fmt.Println(err)
		return
	}
	for { // the watcher's rounds, until somebody is inside
		if inside, err := watcher.Occupants(); err != nil || len(inside) > 0 {
			break
		}
	}
	_ = watcher.Fail("the shared index is inconsistent")
	<-done
	fmt.Println("drained, cleaned, sealed:", drainAndSeal(ctx, watcher))
	// Output:
	// too early: true
	// inside, in generation 1
	// the environment has failed, run recovery: generation 1: the shared index is inconsistent
	// drained, cleaned, sealed: 2
}

func drainAndSeal(ctx context.Context, k *home.Keeper) uint64 {
	d, err := k.Drain(ctx)
	if err != nil {
		return 0
	}
	defer d.Release()
	gen, err := d.Seal(ctx)
	if err != nil {
		return 0
	}
	return gen
}
