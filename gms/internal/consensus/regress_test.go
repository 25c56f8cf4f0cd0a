package consensus

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// The tests of this file provoke faults of the bare library that others have met (their numbers are those of the list of
// field reports), and then show that the same schedule does no harm here. Each runs in a bubble; "bare" is hashicorp/raft
// with its own transport and stores, and its defaults where they matter.

// R1: a heartbeat of a later term, taken beside the main loop, has an old leader stamp its next entry with a term that it
// never won.
func TestR01AnOldLeaderStampsNoTermThatItNeverWon(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWires()
			b, c := startPuppet(w, "b"), startPuppet(w, "c")
			store := raft.NewInmemStore()
			a := startBare(t, w, "a", store, store, abc...)
			awaitThat(t, "a to lead", func() bool { return a.State() == raft.Leader })
			synctest.Wait()
			won := a.CurrentTerm()
			b.heartbeat(t, "a", won+1)
			_ = a.Apply([]byte("late"), time.Second).Error()
			if l := lastEntry(t, store); string(l.Data) != "late" || l.Term != won+1 {
				t.Errorf("the bare library does not do it any more: %q of term %d, won was %d", l.Data, l.Term, won)
			}
			a.stop()
			b.close()
			c.close()
		})
	})
	t.Run("embedded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWires()
			b, c := startPuppet(w, "b"), startPuppet(w, "c")
			stores := NewMemStores()
			a := embedded(t, w, "a", stores, abc...)
			awaitThat(t, "a to lead", a.IsLeader)
			synctest.Wait()
			won := a.Term()
			b.heartbeat(t, "a", won+1)
			_, _, err := a.Propose(t.Context(), []byte("late"))
			if !errors.Is(err, ErrNotLeader) {
				t.Errorf("proposed by a deposed leader: %v", err)
			}
			if l := lastEntry(t, stores.logs); l.Term > won || string(l.Data) == "late" {
				t.Errorf("%q has term %d, won was %d", l.Data, l.Term, won)
			}
			a.Stop()
			b.close()
			c.close()
			<-time.After(time.Minute)
		})
	})
}

// R3: after one rejected append, a leader that pipelines may never replicate to that follower again, while heartbeats look
// fine. It takes two that race; so it is tried until it happens.
func TestR03AFollowerIsReplicatedToAfterARejection(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		stuck := 0
		for range 30 {
			synctest.Test(t, func(t *testing.T) {
				w := newWires()
				w.buffered = true
				b, c := startPuppet(w, "b"), startPuppet(w, "c")
				store := raft.NewInmemStore()
				a := startBare(t, w, "a", store, store, abc...)
				awaitThat(t, "a to lead", func() bool { return a.State() == raft.Leader })
				if !rejectOnce(b, func(data string) error { return a.Apply([]byte(data), time.Second).Error() }) {
					stuck++
				}
				a.stop()
				b.close()
				c.close()
			})
			if stuck > 0 {
				return
			}
		}
		t.Error("the bare library does not do it any more")
	})
	t.Run("embedded", func(t *testing.T) {
		for range 30 {
			synctest.Test(t, func(t *testing.T) {
				w := newWires()
				w.buffered = true
				b, c := startPuppet(w, "b"), startPuppet(w, "c")
				a := embedded(t, w, "a", NewMemStores(), abc...)
				awaitThat(t, "a to lead", a.IsLeader)
				propose := func(data string) error {
					_, _, err := a.Propose(t.Context(), []byte(data))
					return err
				}
				if !rejectOnce(b, propose) {
					t.Error("b is not replicated to any more")
				}
				a.Stop()
				b.close()
				c.close()
				<-time.After(time.Minute)
			})
			if t.Failed() {
				return
			}
		}
	})
}

// rejectOnce has b reject one append while others are on their way to it, and says whether it gets entries later.
func rejectOnce(b *puppet, propose func(string) error) (goesOn bool) {
	for i := range 5 { // pipelining begins after the first success
		_ = propose(fmt.Sprint("warm ", i))
		<-time.After(100 * time.Millisecond)
	}
	release := make(chan struct{})
	var once sync.Once
	b.answers(func(r *raft.AppendEntriesRequest) *raft.AppendEntriesResponse {
		resp := &raft.AppendEntriesResponse{RPCHeader: r.RPCHeader, Term: r.Term, LastLog: r.PrevLogEntry + uint64(len(r.Entries)), Success: true}
		if len(r.Entries) > 0 {
			once.Do(func() {
				<-release
				resp.Success, resp.LastLog = false, r.PrevLogEntry
			})
		}
		return resp
	})
	for i := range 4 {
		_ = propose(fmt.Sprint("meanwhile ", i))
		synctest.Wait()
	}
	close(release)
	<-time.After(time.Second)
	before := b.entries()
	for i := range 20 {
		_ = propose(fmt.Sprint("later ", i))
		<-time.After(time.Second)
	}
	return b.entries() > before
}

// R5: the term and the candidate of a vote are two writes. A power cut between them leaves the new term beside an older
// candidate, who then gets the vote of that term without a look at its log.
func TestR05AVoteIsOneWrite(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWires()
			b, c := startPuppet(w, "b"), startPuppet(w, "c")
			store := raft.NewInmemStore()
			cut := &cutStable{StableStore: store}
			a := startBare(t, w, "a", store, cut, abc...)
			last := followAndVote(t, c, b, cut)
			a.stop()
			cut.armed = false
			a = startBare(t, w, "a", store, cut)
			if !c.requestVote(t, "a", 5, last-1, 1) {
				t.Error("the bare library does not do it any more")
			}
			a.stop()
			b.close()
			c.close()
		})
	})
	t.Run("embedded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWires()
			b, c := startPuppet(w, "b"), startPuppet(w, "c")
			stores := &cutStores{MemStores: NewMemStores(), cut: &cutStable{}}
			a := embedded(t, w, "a", stores, abc...)
			last := followAndVote(t, c, b, stores.cut)
			a.Stop()
			stores.cut.armed = false
			a = embedded(t, w, "a", stores)
			if c.requestVote(t, "a", 5, last-1, 1) {
				t.Error("a candidate with a shorter log got the vote")
			}
			a.Stop()
			b.close()
			c.close()
			<-time.After(time.Minute)
		})
	})
}

// followAndVote has a vote for c in term 2 and follow it, and then vote for b in term 5 while the power goes. It returns the
// last index of a's log.
func followAndVote(t *testing.T, c, b *puppet, cut *cutStable) (last uint64) {
	t.Helper()
	if !c.requestVote(t, "a", 2, 1, 1) {
		t.Error("a does not vote for c")
	}
	var resp raft.AppendEntriesResponse
	req := &raft.AppendEntriesRequest{RPCHeader: headOf("c"), Term: 2, PrevLogEntry: 1, PrevLogTerm: 1}
	for i := uint64(2); i <= 4; i++ {
		req.Entries = append(req.Entries, &raft.Log{Index: i, Term: 2, Type: raft.LogCommand, Data: []byte("x")})
	}
	if err := c.trans.AppendEntries(raft.ServerID(serverID("a")), "a", req, &resp); err != nil || !resp.Success {
		t.Errorf("a does not follow c: %v, %v", &resp, err)
	}
	cut.armed = true
	if b.requestVote(t, "a", 5, 4, 2) {
		t.Error("a votes though the power has gone")
	}
	return 4
}

// cutStable loses the power before it writes the candidate of a vote.
type cutStable struct {
	raft.StableStore
	armed bool
}

func (c *cutStable) Set(key, val []byte) error {
	if c.armed && (string(key) == keyVoteCand || string(key) == keyVote) {
		return errPower
	}
	return c.StableStore.Set(key, val)
}

type cutStores struct {
	*MemStores
	cut *cutStable
}

func (c *cutStores) open(dir string, l hclog.Logger, full func(error)) (*storage, error) {
	s, err := c.MemStores.open(dir, l, full)
	if err == nil {
		c.cut.StableStore = s.stable
		s.stable = c.cut
	}
	return s, err
}

// R23: two that each found a cluster make one of it later, and what one of them had committed is lost.
func TestR23ALogIsFoundedOnce(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWires()
			sa, sb := raft.NewInmemStore(), raft.NewInmemStore()
			a, b := startBare(t, w, "a", sa, sa, "a"), startBare(t, w, "b", sb, sb, "b")
			awaitThat(t, "two leaders", func() bool { return a.State() == raft.Leader && b.State() == raft.Leader })
			for i := range 5 {
				if err := errors.Join(a.Apply(fmt.Append(nil, "a", i), time.Second).Error(), b.Apply(fmt.Append(nil, "b", i), time.Second).Error()); err != nil {
					t.Fatal(err)
				}
			}
			_ = a.AddVoter(raft.ServerID(serverID("b")), "b", 0, time.Second).Error()
			awaitThat(t, "b to follow a", func() bool { return b.State() == raft.Follower && a.Apply([]byte("both"), time.Second).Error() == nil })
			<-time.After(10 * time.Second)
			if x, y := a.tape.String(), b.tape.String(); x == y {
				t.Errorf("the bare library does not do it any more: %q and %q", x, y)
			}
			b.stop()
			a.stop()
		})
	})
	t.Run("embedded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			leader := c.form(abc...)
			c.propose(leader, "x")
			settle()
			lone := others(abc, leader)[0]
			c.stop() // the others are gone, and who is left is told to begin anew
			n := c.make(lone)
			if err := n.Bootstrap(servers(lone)); !errors.Is(err, ErrHasState) {
				t.Errorf("founded over a log: %v", err)
			}
			if err := n.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			if n.IsLeader() {
				t.Error("one of three leads alone")
			}
			n.Stop()
		})
	})
}
