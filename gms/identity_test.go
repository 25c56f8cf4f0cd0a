package gms

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/gms/internal/consensus"
)

// awaitErr waits for the group to end by itself.
func awaitErr(tg *testGroup, n *testNode) error {
	tg.t.Helper()
	tg.await(n, "an error that ends it", func() bool { return n.Err() != nil })
	return n.Err()
}

// TestNamesBelongToHomes: a known name with another home is refused, while its run is open and afterwards; so is a home
// whose log has been emptied; and none of them harms those that stand.
func TestNamesBelongToHomes(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	home := tg.dirs["n3"]
	rightful := tg.nodes["n3"]
	ports := tg.ports["n3"]
	tg.place("n3") // the same name with other ports and another home
	if err := awaitErr(tg, tg.start("n3")); !errors.Is(err, ErrNameTaken) {
		t.Errorf("while the name stands: %v", err)
	}
	tg.stop("n3")
	if st, _ := rightful.Standing(); st != Held && st != Suspect {
		t.Errorf("the rightful one: %v", st)
	}
	tg.nodes["n3"] = rightful
	tg.stop("n3")
	if err := awaitErr(tg, tg.start("n3")); !errors.Is(err, ErrOtherHome) {
		t.Errorf("after its run was closed: %v", err)
	}
	tg.stop("n3")
	t.Run("log gone", func(t *testing.T) { emptiedHome(t, tg, home, ports) })
	replacedHome(t, tg)
}

// emptiedHome: a home that has lost its log, and gets it back.
func emptiedHome(t *testing.T, tg *testGroup, home string, ports [2]int) {
	raft := filepath.Join(home, "raft")
	if err := os.Rename(raft, raft+".kept"); err != nil {
		t.Fatal(err)
	}
	tg.dirs["n3"], tg.ports["n3"] = home, ports
	if err := awaitErr(tg, tg.start("n3")); !errors.Is(err, ErrOlderHome) {
		t.Errorf("a home without its log: %v", err)
	}
	tg.stop("n3")
	if err := errors.Join(os.RemoveAll(raft), os.Rename(raft+".kept", raft)); err != nil {
		t.Fatal(err)
	}
	n3 := tg.start("n3")
	tg.awaitStanding("n3")
	tg.await(n3, "all members", func() bool { return len(n3.View().Members) == 3 })
}

// replacedHome: the operator says that the home is lost; another one follows the log first and votes in its place.
func replacedHome(t *testing.T, tg *testGroup) {
	tg.stop("n3")
	if err := tg.nodes["n1"].ReplaceHome(tg.ctx, "n7"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a stranger's home was replaced: %v", err)
	}
	if err := tg.nodes["n1"].ReplaceHome(tg.ctx, "n3"); err != nil {
		t.Fatal(err)
	}
	tg.place("n3")
	n3 := tg.start("n3")
	tg.awaitStanding("n3")
	id := server{node: "n3", home: n3.home.idHex()}.id()
	tg.await(n3, "the vote of the new home", func() bool {
		c := n3.cons.Configuration()
		return len(c.Servers) == 3 && slices.ContainsFunc(c.Servers, func(s consensus.Server) bool { return s.ID == id && s.Voter })
	})
	if n := len(n3.voterNodes()); n != 3 {
		t.Errorf("%d voters", n)
	}
	_, run := n3.Self()
	n1 := tg.nodes["n1"]
	if err := n1.CloseRun(tg.ctx, "n3", run, "asked for"); err != nil {
		t.Fatal(err)
	}
	tg.await(n3, "a run after the one that an operator closed", func() bool {
		st, _ := n3.Standing()
		_, now := n3.Self()
		return st == Held && now != run
	})
	for _, r := range recoveriesFor(n1, run) {
		component, _, _ := strings.Cut(r, " ")
		if err := n1.DropRecovery(tg.ctx, component, run, "nothing was done"); err != nil {
			t.Error(err)
		}
		if err := n1.RetryRecovery(tg.ctx, component, run); !errors.Is(err, ErrNotFound) {
			t.Errorf("retried after its end: %v", err)
		}
	}
}

// TestAnOlderCopyOfAHomeIsRefused: it would vote without memory. Whoever leads, and however short before its stop the node
// took the last entry: it says itself how far it was. It comes back with another home, once an operator has said so.
func TestAnOlderCopyOfAHomeIsRefused(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	tg.stop("n3")
	older := filepath.Join(t.TempDir(), "older")
	if err := os.CopyFS(older, os.DirFS(tg.dirs["n3"])); err != nil {
		t.Fatal(err)
	}
	n3 := tg.start("n3")
	tg.awaitStanding("n3")
	for range 20 {
		if _, err := n3.Cache().Commit(tg.ctx, Txn{Puts: []Put{{Key: Key{Component: "c", Key: "k"}, Value: []byte("v")}}}); err != nil {
			t.Fatal(err)
		}
	}
	tg.stop("n3")
	tg.dirs["n3"] = older
	n3 = tg.start("n3")
	var err error
	tg.await(n3, "a verdict", func() bool {
		st, _ := n3.Standing()
		err = n3.Err()
		return err != nil || st == Held
	})
	if !errors.Is(err, ErrOlderHome) {
		t.Errorf("a copy that lacks entries: %v", err)
	}
	replacedHome(t, tg)
}

func TestStartErrorsLeaveNothingOpen(t *testing.T) {
	tg := newTestGroup(t, 1)
	cfg := tg.config("n1")
	fresh := func(cfg Config) *Group {
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	blocker, err := SystemNetwork{}.Listen(tg.ctx, "tcp", cfg.Cluster.Bind)
	if err != nil {
		t.Fatal(err)
	}
	g := fresh(cfg)
	if err := g.Start(tg.ctx); err == nil {
		t.Fatal("started on a port that is taken")
	}
	if err := blocker.Close(); err != nil {
		t.Fatal(err)
	}
	udp, err := SystemNetwork{}.ListenPacket(tg.ctx, "udp", cfg.Gossip.Bind)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(tg.ctx); err == nil {
		t.Fatal("started on a gossip port that is taken")
	}
	if err := udp.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Start(tg.ctx); err != nil {
		t.Fatalf("after the ports were freed: %v", err)
	}
	if err := g.Start(tg.ctx); err == nil {
		t.Error("started twice")
	}
	second := cfg
	second.Gossip.Bind, second.Cluster.Bind = "127.0.0.1:0", "127.0.0.1:0"
	if err := fresh(second).Start(tg.ctx); !errors.Is(err, ErrHomeInUse) {
		t.Errorf("a second process on the home: %v", err)
	}
	if err := g.AwaitStanding(tg.ctx); err != nil {
		t.Error(err)
	}
	if err := errors.Join(g.Stop(tg.ctx), g.Stop(tg.ctx)); err != nil {
		t.Error(err)
	}
	if err := g.Start(tg.ctx); !errors.Is(err, ErrStopped) {
		t.Errorf("started after its stop: %v", err)
	}
	if err := g.AwaitStanding(tg.ctx); !errors.Is(err, ErrStopped) {
		t.Errorf("awaited after its stop: %v", err)
	}
	if _, err := g.Claim(tg.ctx, "c", "i", 1); !errors.Is(err, ErrRunClosed) {
		t.Errorf("a claim after the stop: %v", err)
	}
}

func TestStopBeforeStart(t *testing.T) {
	tg := newTestGroup(t, 1)
	g, err := New(tg.config("n1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Stop(tg.ctx), g.Stop(tg.ctx)); err != nil {
		t.Error(err)
	}
	if err := g.Start(tg.ctx); !errors.Is(err, ErrStopped) {
		t.Errorf("error %v", err)
	}
}

// TestStartStopStress: whatever comes first, everything is closed in the end, and every Stop waits for it.
func TestStartStopStress(t *testing.T) {
	for i := range 10 {
		tg := newTestGroup(t, 1)
		g, err := New(tg.config("n1"))
		if err != nil {
			t.Fatal(err)
		}
		ends := make(chan error, 20)
		for k := range 10 {
			go func() {
				if k%2 == i%2 {
					ends <- g.Start(tg.ctx)
				} else {
					ends <- nil
				}
				ctx, cancel := context.WithTimeout(tg.ctx, time.Duration(k*10)*time.Millisecond)
				defer cancel()
				ends <- g.Stop(ctx)
			}()
		}
		for range 20 {
			<-ends
		}
		h, _, err := openHome(tg.dirs["n1"], "test")
		if err != nil {
			t.Fatalf("round %d: the home is still held: %v", i, err)
		}
		h.close()
		l, err := SystemNetwork{}.Listen(tg.ctx, "tcp", tg.config("n1").Cluster.Bind)
		if err != nil {
			t.Fatalf("round %d: the port is still open: %v", i, err)
		}
		l.Close()
	}
}

// TestStopWithoutAQuorumIsBounded: a node that is alone does not wait for the others for long.
func TestStopWithoutAQuorumIsBounded(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	tg.net.cut("n1")
	begun := time.Now()
	tg.stop("n1")
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("the stop took %v", took)
	}
	tg.net.cut()
}

// TestACopiedHomeIsRefused: a second process on a copy of a home whose node stands elsewhere does not take the run over, also
// when the copy lacks nothing; the first one stands on, and after a kill the same home comes back at once.
func TestACopiedHomeIsRefused(t *testing.T) {
	t.Parallel()
	tg := formed(t, 3)
	home, ports := tg.dirs["n3"], tg.ports["n3"]
	tg.stop("n3")
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(home)); err != nil {
		t.Fatal(err)
	}
	first := tg.start("n3")
	tg.awaitStanding("n3")
	_, run := first.Self()
	tg.place("n3") // the second machine
	tg.dirs["n3"] = copied
	if err := awaitErr(tg, tg.start("n3")); !errors.Is(err, ErrNameTaken) || !strings.Contains(err.Error(), "another copy of this home") {
		t.Errorf("the copy: %v", err)
	}
	tg.stop("n3")
	if st, _ := first.Standing(); st != Held && st != Suspect {
		t.Errorf("the first one: %v", st)
	}
	if _, now := first.Self(); now != run {
		t.Errorf("the first one had run %s, and has %s", run, now)
	}
	tg.nodes["n3"] = first
	tg.stop("n3")
	tg.dirs["n3"], tg.ports["n3"] = home, ports
	tg.start("n3")
	tg.awaitStanding("n3")
}
