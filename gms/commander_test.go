package gms

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// fakeSubmitter answers each try by its script, the last line again and again.
type fakeSubmitter struct {
	mu      sync.Mutex
	script  []func(ctx context.Context, node string, c *wire.Command) (*wire.SubmitReply, error)
	tries   []*wire.Command
	nodes   []string
	leader  string
	changed chan struct{}
}

func (f *fakeSubmitter) submit(ctx context.Context, node string, cmds []*wire.Command) (*wire.SubmitReply, error) {
	f.mu.Lock()
	step := f.script[min(len(f.tries), len(f.script)-1)]
	f.tries = append(f.tries, cmds[0])
	f.nodes = append(f.nodes, node)
	f.mu.Unlock()
	return step(ctx, node, cmds[0])
}

func (f *fakeSubmitter) leaderHint() string             { return f.leader }
func (f *fakeSubmitter) leaderChanged() <-chan struct{} { return f.changed }

type try = func(ctx context.Context, node string, c *wire.Command) (*wire.SubmitReply, error)

func answers(code wire.Code) try {
	return func(context.Context, string, *wire.Command) (*wire.SubmitReply, error) {
		return &wire.SubmitReply{Results: []*wire.Result{{Code: code, Token: 5}}}, nil
	}
}

func notLeader(hint string) try {
	return func(context.Context, string, *wire.Command) (*wire.SubmitReply, error) {
		return &wire.SubmitReply{NotLeader: true, Leader: hint}, nil
	}
}

func fails(err error) try {
	return func(context.Context, string, *wire.Command) (*wire.SubmitReply, error) { return nil, err }
}

func lost(context.Context, string, *wire.Command) (*wire.SubmitReply, error) {
	return &wire.SubmitReply{Unknown: true}, nil
}

func silent(ctx context.Context, _ string, _ *wire.Command) (*wire.SubmitReply, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func command() *wire.Command {
	return &wire.Command{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: "l"}}}
}

func TestRule21_TheSameRequestIsRepeatedUntilItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeSubmitter{script: []try{notLeader(""), fails(errUnreached), lost, fails(errors.New("broken")), silent, answers(wire.Code_CODE_AGAIN), answers(wire.Code_CODE_OK)}}
		r, err := newCommander(f).do(t.Context(), command())
		if err != nil || r.GetToken() != 5 {
			t.Fatalf("%v, %v", r, err)
		}
		if len(f.tries) != 7 {
			t.Errorf("%d tries", len(f.tries))
		}
		for _, c := range f.tries {
			if c.GetSeq() != 1 || string(c.GetClient()) != string(f.tries[0].GetClient()) || len(c.GetClient()) != 16 {
				t.Errorf("request id %x/%d", c.GetClient(), c.GetSeq())
			}
		}
	})
}

func TestCommanderFollowsTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		f := &fakeSubmitter{leader: "a", script: []try{notLeader("b"), notLeader("c"), answers(wire.Code_CODE_OK)}}
		if _, err := newCommander(f).do(t.Context(), command()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.nodes, []string{"a", "b", "c"}) || time.Since(begun) > 0 {
			t.Errorf("asked %v in %v", f.nodes, time.Since(begun))
		}
	})
}

// Members that name each other as the leader must not be asked in a circle without a pause.
func TestCommanderRestsWhenMembersPointAtEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeSubmitter{leader: "a", script: []try{func(_ context.Context, node string, _ *wire.Command) (*wire.SubmitReply, error) {
			return notLeader(map[string]string{"a": "b", "b": "a"}[node])(nil, "", nil)
		}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := newCommander(f).do(ctx, command())
		if !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrUnknown) {
			t.Errorf("error %v", err)
		}
		if n := len(f.tries); n > 60 {
			t.Errorf("%d tries in a second", n)
		}
	})
}

func TestCommanderWakesWhenTheLeaderChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeSubmitter{changed: make(chan struct{}), script: []try{notLeader(""), answers(wire.Code_CODE_OK)}}
		close(f.changed)
		begun := time.Now()
		if _, err := newCommander(f).do(t.Context(), command()); err != nil || time.Since(begun) > 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

func TestCommanderGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		try  try
		want error
	}{
		"nobody leads":         {notLeader(""), ErrNoQuorum},
		"nobody was reached":   {fails(errUnreached), ErrNoQuorum},
		"the outcome is lost":  {lost, ErrUnknown},
		"the connection broke": {fails(errors.New("broken")), ErrUnknown},
		"no answer ever came":  {silent, ErrUnknown},
		"an answer without any": {func(context.Context, string, *wire.Command) (*wire.SubmitReply, error) {
			return &wire.SubmitReply{}, nil
		}, ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := newCommander(&fakeSubmitter{script: []try{c.try}}).do(ctx, command())
				if !errors.Is(err, c.want) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want %v", err, c.want)
				}
				if errors.Is(err, ErrUnknown) && errors.Is(err, ErrNoQuorum) {
					t.Errorf("both unknown and not done: %v", err)
				}
			})
		})
	}
}

// With the run, the answers to its commands are forgotten: the repeat of a command whose answer was lost learns nothing.
func TestRule21_AClosedRunIsNotTakenForNo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := newCommander(&fakeSubmitter{script: []try{lost, answers(wire.Code_CODE_RUN_NOT_OPEN)}}).do(t.Context(), command())
		if !errors.Is(err, ErrUnknown) || !errors.Is(err, ErrRunClosed) {
			t.Errorf("error %v", err)
		}
		r, err := newCommander(&fakeSubmitter{script: []try{notLeader(""), answers(wire.Code_CODE_RUN_NOT_OPEN)}}).do(t.Context(), command())
		if err != nil || r.GetCode() != wire.Code_CODE_RUN_NOT_OPEN {
			t.Errorf("never sent before: %v, %v", r, err)
		}
	})
}

// Acked never passes a request whose answer somebody still waits for.
func TestRule21_AcknowledgedIsWhatNobodyWaitsForAnyMore(t *testing.T) {
	c := newCommander(&fakeSubmitter{})
	cmds := []*wire.Command{command(), command(), command()}
	for _, cmd := range cmds {
		if err := c.begin(cmd); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		end  uint64
		want uint64
	}{{2, 0}, {1, 2}, {3, 3}} {
		c.end(step.end)
		if got := c.acked(); got != step.want {
			t.Errorf("after the answer to %d: acked %d, want %d", step.end, got, step.want)
		}
	}
}

func TestCommanderRefusesWhatNoEntryTakes(t *testing.T) {
	f := &fakeSubmitter{script: []try{answers(wire.Code_CODE_OK)}}
	big := &wire.Command{Op: &wire.Command_Lock{Lock: &wire.Lock{Name: string(make([]byte, maxCommand))}}}
	if _, err := newCommander(f).do(t.Context(), big); !errors.Is(err, ErrTooLarge) || len(f.tries) != 0 {
		t.Errorf("%v after %d tries", err, len(f.tries))
	}
}

// A late grant that nobody waits for is given back (PROTOCOL.md 21).
func TestRule21_ALateGrantIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		answer := make(chan struct{})
		f := &fakeSubmitter{script: []try{
			silent,
			func(context.Context, string, *wire.Command) (*wire.SubmitReply, error) {
				<-answer
				return answers(wire.Code_CODE_OK)(nil, "", nil)
			},
			answers(wire.Code_CODE_OK),
		}}
		g.commands = newCommander(f)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := g.TryLock(ctx, "/SBOI/c")
		if !errors.Is(err, ErrUnknown) {
			t.Fatalf("error %v", err)
		}
		synctest.Wait()
		close(answer)
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.tries) != 3 {
			t.Fatalf("%d tries", len(f.tries))
		}
		back := f.tries[2].GetUnlock()
		if back.GetName() != "/SBOI/c" || back.GetToken() != 5 || string(f.tries[2].GetRun()) != string(f.tries[0].GetRun()) {
			t.Errorf("given back: %v", f.tries[2])
		}
		if f.tries[1].GetSeq() != f.tries[0].GetSeq() || f.tries[2].GetSeq() == f.tries[0].GetSeq() {
			t.Errorf("request ids %d, %d, %d", f.tries[0].GetSeq(), f.tries[1].GetSeq(), f.tries[2].GetSeq())
		}
	})
}

// A refusal that comes late gives nothing back.
func TestLateRefusalIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		f := &fakeSubmitter{script: []try{silent, answers(wire.Code_CODE_BUSY)}}
		g.commands = newCommander(f)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Claim(ctx, "c", "i", 1); !errors.Is(err, ErrUnknown) {
			t.Fatalf("error %v", err)
		}
		synctest.Wait()
		if len(f.tries) != 2 {
			t.Errorf("%d tries", len(f.tries))
		}
	})
}

func TestNothingIsClaimedWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		f := &fakeSubmitter{script: []try{answers(wire.Code_CODE_OK)}}
		g.commands = newCommander(f)
		if _, err := g.Claim(t.Context(), "c", "i", 1); err != nil {
			t.Fatal(err)
		}
		pass(g.cfg.Timing.TTL)
		if _, err := g.Claim(t.Context(), "c", "i", 1); !errors.Is(err, ErrLeaseExpired) {
			t.Errorf("expired: %v", err)
		}
		g.setStanding(nil)
		if _, err := g.TryLock(t.Context(), "l"); !errors.Is(err, ErrRunClosed) {
			t.Errorf("no run: %v", err)
		}
		if len(f.tries) != 1 {
			t.Errorf("%d tries", len(f.tries))
		}
	})
}
