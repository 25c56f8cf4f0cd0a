package gmstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms"
)

// busy has every node write to the state cache until stop is called, and tells of those that could not.
func busy(t *testing.T, w *World) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	for _, n := range w.Living() {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := gms.Key{Component: "load", Member: n.Name, Key: fmt.Sprint(i % 10)}
				put := gms.Txn{Puts: []gms.Put{{Key: key, Value: fmt.Append(nil, i)}}}
				if _, err := n.Group.Cache().Commit(ctx, put); err != nil && ctx.Err() == nil && n.Alive() {
					t.Errorf("%s could not write: %v", n.Name, err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
	}
	return func() { cancel(); writers.Wait() }
}

func runsOf(w *World) map[string]string {
	runs := map[string]string{}
	for _, n := range w.Living() {
		runs[n.Name] = n.Run()
	}
	return runs
}

// A whole rotation of the gossip keys under load: everybody has the new key, uses it, has lost the old one, and no run has
// been closed or suspected for it.
func TestKeysAreChangedUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := Cluster(t, 5, WithSecurity())
		before, version := runsOf(w), w.Node("n1").Group.View().Version
		stop := busy(t, w)
		old, next := gms.KeyFingerprint(w.safe.key), bytes.Repeat([]byte{7}, 32)
		ctx := t.Context()
		step := func(what string, r gms.KeyringReport, err error) {
			t.Helper()
			if err != nil || !r.Complete || len(r.Members) != 5 {
				t.Fatalf("%s: %+v, %v", what, r, err)
			}
			Advance(10 * time.Second)
		}
		r, err := w.Node("n2").Group.KeyringAdd(ctx, next)
		step("add", r, err)
		if _, err := w.Node("n3").Group.KeyringRemove(ctx, old); !errors.Is(err, gms.ErrKeyInUse) {
			t.Errorf("the key in use was removed: %v", err)
		}
		r, err = w.Node("n4").Group.KeyringUse(ctx, gms.KeyFingerprint(next))
		step("use", r, err)
		r, err = w.Node("n5").Group.KeyringRemove(ctx, old)
		step("remove", r, err)
		if len(r.Keys) != 1 || r.Keys[0].Fingerprint != gms.KeyFingerprint(next) || !r.Keys[0].InUse {
			t.Errorf("the ring at last is %+v", r.Keys)
		}
		Advance(time.Minute)
		stop()
		for name, run := range before {
			if w.Node(name).Run() != run {
				t.Errorf("%s has another run", name)
			}
		}
		if v := w.Node("n1").Group.View(); v.Version != version {
			t.Errorf("view %d became %d", version, v.Version)
		}
		w.Restart("n3") // on the ring of its home: its configuration has the old key only
		w.AwaitView("n1", "n2", "n3", "n4", "n5")
	})
}

// A key is not used before every configured node is proven to have it, those that are down too. One that was down while a
// key was used and another removed learns the ring when it is back, over the cluster port.
func TestKeysWaitForTheAbsent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := Cluster(t, 3, WithSecurity())
		ctx := t.Context()
		one := w.Node("n1").Group
		old, next := gms.KeyFingerprint(w.safe.key), bytes.Repeat([]byte{7}, 32)
		w.Kill("n3")
		w.AwaitGone("n3")
		r, err := one.KeyringAdd(ctx, next)
		if err != nil || r.Complete || len(r.Members) != 3 || r.Members[2].Problem == "" {
			t.Fatalf("add without n3: %+v, %v", r, err)
		}
		if _, err := one.KeyringUse(ctx, gms.KeyFingerprint(next)); !errors.Is(err, gms.ErrNotProven) {
			t.Fatalf("a key was used that n3 has not: %v", err)
		}
		w.Start("n3")
		w.AwaitView("n1", "n2", "n3")
		w.Await("n3 to hear of the new key", func() bool {
			r, err := one.KeyringList(ctx)
			return err == nil && r.Complete
		})
		if r, err := one.KeyringUse(ctx, gms.KeyFingerprint(next)); err != nil || !r.Complete {
			t.Fatalf("use: %+v, %v", r, err)
		}
		w.Kill("n3")
		w.AwaitGone("n3")
		third := bytes.Repeat([]byte{9}, 16)
		if _, err := one.KeyringAdd(ctx, third); err != nil {
			t.Fatal(err)
		}
		if r, err := one.KeyringRemove(ctx, old); err != nil || r.Complete {
			t.Fatalf("remove without n3: %+v, %v", r, err)
		}
		// As if it had been away from the beginning: none of its keys is known any more.
		if err := os.Remove(filepath.Join(w.sites["n3"].home, "gossip.keys")); err != nil {
			t.Fatal(err)
		}
		w.Start("n3")
		w.AwaitView("n1", "n2", "n3")
		if r, err := one.KeyringList(ctx); err != nil || !r.Complete || len(r.Keys) != 2 {
			t.Errorf("at last: %+v, %v", r, err)
		}
	})
}

// A rekey whose asker dies in the middle of it leaves a ring by which everybody still hears everybody; begun again by another node,
// as from the start, it ends with one key that all have, whatever the first one had come to.
func TestARekeyThatWasInterrupted(t *testing.T) {
	for _, came := range []string{"add", "use"} {
		t.Run(came, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := Cluster(t, 3, WithSecurity())
				ctx, first, next := t.Context(), bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{9}, 32)
				done := func(r gms.KeyringReport, err error) gms.KeyringReport {
					t.Helper()
					if err != nil || !r.Complete {
						t.Fatalf("%+v, %v", r, err)
					}
					return r
				}
				one := w.Node("n1").Group
				done(one.KeyringAdd(ctx, first))
				if came == "use" {
					done(one.KeyringUse(ctx, gms.KeyFingerprint(first)))
				}
				w.Restart("n1")
				w.AwaitView("n1", "n2", "n3")
				two := w.Node("n2").Group
				w.Await("everybody has the ring", func() bool { r, err := two.KeyringList(ctx); return err == nil && r.Complete })
				before := done(two.KeyringList(ctx))
				if len(before.Keys) != 2 {
					t.Fatalf("the interrupted one has left %+v", before.Keys)
				}
				done(two.KeyringAdd(ctx, next))
				done(two.KeyringUse(ctx, gms.KeyFingerprint(next)))
				var last gms.KeyringReport
				for _, k := range before.Keys {
					last = done(two.KeyringRemove(ctx, k.Fingerprint))
				}
				if len(last.Keys) != 1 || last.Keys[0].Fingerprint != gms.KeyFingerprint(next) || !last.Keys[0].InUse {
					t.Errorf("the ring at last is %+v", last.Keys)
				}
				w.Restart("n3") // on the ring of its home
				w.AwaitView("n1", "n2", "n3")
			})
		})
	}
}

// Two who change the keys at once: one does, the other is told.
func TestKeysAreChangedByOneAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := Cluster(t, 3, WithSecurity())
		errs := make(chan error, 3)
		for i, n := range w.Living() {
			go func() {
				_, err := n.Group.KeyringAdd(t.Context(), bytes.Repeat([]byte{byte(i + 1)}, 32))
				errs <- err
			}()
		}
		done := 0
		for range 3 {
			switch err := <-errs; {
			case err == nil:
				done++
			case !errors.Is(err, gms.ErrBusy):
				t.Error(err)
			}
		}
		if r, err := w.Node("n1").Group.KeyringList(t.Context()); done == 0 || err != nil || !r.Complete || len(r.Keys) != 1+done {
			t.Errorf("%d changes made %+v, %v", done, r, err)
		}
	})
}

// Without certificates no key is told.
func TestKeysAreToldBetweenCertificatesOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := Cluster(t, 2, WithConfig(func(_ string, c *gms.Config) { c.GossipKeys = [][]byte{bytes.Repeat([]byte{7}, 32)} }))
		if r, err := w.Node("n1").Group.KeyringList(t.Context()); err == nil {
			t.Errorf("%+v", r)
		}
	})
}
