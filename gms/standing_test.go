package gms

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// opening has a loose group open run 7 against a log that answers by the script.
func opening(t *testing.T, script ...try) (*looseGroup, *fakeSubmitter, func() (uint64, error)) {
	g := newLooseGroup(t)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	g.home.key = key
	f := &fakeSubmitter{script: script}
	g.commands = newCommander(f)
	return g, f, func() (uint64, error) { return g.openRun(t.Context(), runOf(7), "127.0.0.1:9") }
}

func result(r *wire.Result) try {
	return func(context.Context, string, *wire.Command) (*wire.SubmitReply, error) {
		return &wire.SubmitReply{Results: []*wire.Result{r}}, nil
	}
}

// PROTOCOL.md 1: the opening names the last run that is known, and learns of a later one by being refused.
func TestRule01_TheNodeNamesItsLastRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, open := opening(t,
			result(&wire.Result{Code: wire.Code_CODE_NOT_FORMED}),
			result(&wire.Result{Code: wire.Code_CODE_STALE, Epoch: 40}),
			result(&wire.Result{Code: wire.Code_CODE_STALE, Epoch: 50}),
			result(&wire.Result{Code: wire.Code_CODE_OK, Position: 60}))
		epoch, err := open()
		if err != nil || epoch != 60 {
			t.Fatalf("%d, %v", epoch, err)
		}
		for i, want := range []uint64{0, 0, 40, 50} {
			if got := f.tries[i].GetOpenRun().GetPrevEpoch(); got != want {
				t.Errorf("try %d names %d, want %d", i, got, want)
			}
		}
	})
}

// An opening whose answer was lost, of a run that somebody has closed since, ends that run: another id opens the next.
func TestOpenRunThatWasClosedBeforeItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f, open := opening(t, lost, result(&wire.Result{Code: wire.Code_CODE_STALE, Epoch: 40}))
		if _, err := open(); !errors.Is(err, ErrRunClosed) || g.Err() != nil {
			t.Errorf("error %v, Err %v", err, g.Err())
		}
		if len(f.tries) != 3 {
			t.Errorf("%d tries", len(f.tries))
		}
	})
}

func TestOpenRunThatIsRefused(t *testing.T) {
	for code, want := range map[wire.Code]error{
		wire.Code_CODE_NAME_TAKEN: ErrNameTaken, wire.Code_CODE_OTHER_HOME: ErrOtherHome, wire.Code_CODE_TOO_LARGE: ErrTooLarge,
	} {
		synctest.Test(t, func(t *testing.T) {
			g, _, open := opening(t, result(&wire.Result{Code: code}))
			_, err := open()
			var hint interface{ Hint() string }
			if !errors.Is(err, want) || !errors.Is(g.Err(), want) || !errors.As(err, &hint) || hint.Hint() == "" {
				t.Errorf("%v: %v, Err %v", code, err, g.Err())
			}
		})
	}
}

// The log's word of the end says why; one by a newer run of this home that is not this process' means a copied home.
func TestTheEndOfARunSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		close func(g *looseGroup)
		want  error
		text  string
		fatal bool
	}{
		"lapsed":      {func(g *looseGroup) { g.must(closeCommand(1, "n1", wire.Evidence_EVIDENCE_LAPSED)) }, ErrRunClosed, "lapsed: test", false},
		"copied home": {func(g *looseGroup) { g.must(openCommand(8, "n1", g.epochIn(1))) }, ErrNameTaken, "node key of this home", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLooseGroup(t)
				g.settle()
				epoch := g.epochIn(1)
				done := make(chan error, 1)
				go func() { done <- g.awaitClosed(t.Context(), runOf(1), epoch) }()
				pass(time.Second)
				if len(done) != 0 {
					t.Fatalf("ended while the run is open: %v", <-done)
				}
				c.close(g)
				if err := <-done; !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error %v", err)
				}
				if (g.Err() != nil) != c.fatal {
					t.Errorf("Err is %v", g.Err())
				}
			})
		})
	}
}

func (g *looseGroup) epochIn(n byte) uint64 {
	for _, m := range g.View().Members {
		if m.Run == runOf(n).String() {
			return m.Epoch
		}
	}
	g.t.Fatalf("run %d is not in the view", n)
	return 0
}

// Whom gossip holds alive is not joined again; everybody else that is known is, the node itself never.
func TestJoinTargets(t *testing.T) {
	g := newLooseGroup(t)
	g.cfg.Seeds = []string{"seed:1", "self:1", "n2:1"}
	g.memory.Peers = map[string]string{"n5": "remembered:1"}
	g.peers.put(metaOf(2, "n2", ""), "n2:1", true)
	g.settle() // whose runs gossip at 127.0.0.1:1
	if got, want := strings.Join(g.joinTargets("self:1"), " "), "127.0.0.1:1 remembered:1 seed:1"; got != want {
		t.Errorf("targets %q, want %q", got, want)
	}
	g.peers.reset()
	if got, want := strings.Join(g.joinTargets("self:1"), " "), "127.0.0.1:1 n2:1 remembered:1 seed:1"; got != want {
		t.Errorf("targets of a new gossip instance %q, want %q", got, want)
	}
}

func TestOwnInterface(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.1:1": true, "[::1]:1": true, "192.0.2.1:1": false, "name:1": false, "127.0.0.1": false, "": false,
	} {
		if got := ownInterface(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

// A later run of the process has the same warden, who is told before the log is; one of which it was not told has none, and
// so has one whose process has no warden at all.
func TestLaterRunsAreToldToTheWarden(t *testing.T) {
	for name, tc := range map[string]struct {
		first bool
		key   []byte
		tell  bool
		err   error
		want  bool
	}{
		"the first run":           {first: true, key: make([]byte, ed25519.PublicKeySize), want: true},
		"a later one":             {key: make([]byte, ed25519.PublicKeySize), tell: true, want: true},
		"it could not be told":    {key: make([]byte, ed25519.PublicKeySize), tell: true, err: errors.New("disk full")},
		"nobody tells it":         {key: make([]byte, ed25519.PublicKeySize)},
		"there is no warden":      {tell: true},
		"the first, without ward": {first: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, f, open := opening(t, result(&wire.Result{Code: wire.Code_CODE_OK, Position: 60}))
				g.cfg.Run, g.cfg.WardenKey = [16]byte{1}, tc.key
				if tc.first {
					g.cfg.Run = runOf(7)
				}
				var told [16]byte
				if tc.tell {
					g.cfg.TellWarden = func(run [16]byte) error {
						if len(f.tries) > 0 {
							t.Error("the log was told first")
						}
						told = run
						return tc.err
					}
				}
				if _, err := open(); err != nil {
					t.Fatal(err)
				}
				if got := len(f.tries[0].GetOpenRun().GetWardenKey()) > 0; got != tc.want {
					t.Errorf("with a warden: %t", got)
				}
				if wantTold := tc.tell && !tc.first && tc.key != nil; (told == runOf(7)) != wantTold {
					t.Errorf("told of %x", told)
				}
			})
		})
	}
}
