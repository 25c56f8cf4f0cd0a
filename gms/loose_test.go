package gms

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// looseGroup is a group whose parts are moved by hand: nothing is open, nothing runs, and the replica takes the entries
// that the test gives it. It stands as run 1 of node n1, with a lease that was acknowledged just now.
type looseGroup struct {
	*Group
	t     *testing.T
	index uint64
}

func newLooseGroup(t *testing.T) *looseGroup {
	g, err := New(Config{Node: "n1", Home: t.TempDir(), Clock: newBubbleClock()})
	if err != nil {
		t.Fatal(err)
	}
	g.home = &homeDir{id: [16]byte{1}}
	ctx, cancel := context.WithCancelCause(context.Background())
	g.bg, g.cancel, g.life = ctx, cancel, lifeStarted
	t.Cleanup(func() {
		cancel(ErrStopped)
		g.wg.Wait()
	})
	s := newSession(runOf(1), g.cfg, nil, nil)
	s.lease.renewed(g.cfg.Clock.Now())
	g.runID = runOf(1)
	g.stand = &standing{run: runOf(1), session: s}
	return &looseGroup{Group: g, t: t}
}

// runOf is the id of the n-th run.
func runOf(n byte) state.RunID { return state.RunID{15: n} }

// apply takes one entry, as consensus would.
func (g *looseGroup) apply(cmds ...*wire.Command) []*wire.Result {
	g.t.Helper()
	return g.applyAt(time.Time{}, cmds...)
}

// applyAt is apply for an entry of that time by the leader's clock.
func (g *looseGroup) applyAt(at time.Time, cmds ...*wire.Command) []*wire.Result {
	g.t.Helper()
	e := &wire.Entry{Version: wire.Protocol, Commands: cmds}
	if !at.IsZero() {
		e.Time = at.UnixMilli()
	}
	data, err := proto.Marshal(e)
	if err != nil {
		g.t.Fatal(err)
	}
	g.index++
	return g.rep.Apply(g.index, data).([]*wire.Result)
}

// must is apply for commands that have to be accepted.
func (g *looseGroup) must(cmds ...*wire.Command) []*wire.Result {
	g.t.Helper()
	results := g.apply(cmds...)
	for i, r := range results {
		if r.GetCode() != wire.Code_CODE_OK {
			g.t.Fatalf("command %d: %v", i, r)
		}
	}
	return results
}

func formCommand() *wire.Command {
	return &wire.Command{Op: &wire.Command_FormGroup{FormGroup: &wire.FormGroup{
		ClusterId: make([]byte, 16), Base: 1000, Settings: &wire.Settings{Selector: wire.Selector_SELECTOR_SUCCESSOR, MaxAttempts: 3},
	}}}
}

// openCommand opens run n of a node whose last run was opened at prev.
func openCommand(n byte, node string, prev uint64, components ...string) *wire.Command {
	op := &wire.OpenRun{
		Node: node, Run: runOf(n).Bytes(), Home: append(make([]byte, 15), node[1]), NodeKey: make([]byte, 32), Role: wire.Role_ROLE_CORE,
		GossipAddr: "127.0.0.1:1", ClusterAddr: "127.0.0.1:2", OwnInterface: true, Protocol: wire.Protocol, PrevEpoch: prev,
	}
	for _, c := range components {
		op.Components = append(op.Components, &wire.Component{Name: c, Exclusion: wire.Exclusion_EXCLUSION_TOKEN})
	}
	return &wire.Command{Run: runOf(n).Bytes(), Op: &wire.Command_OpenRun{OpenRun: op}}
}

func closeCommand(n byte, node string, e wire.Evidence) *wire.Command {
	return &wire.Command{Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{Node: node, Run: runOf(n).Bytes(), Evidence: e, Detail: "test"}}}
}
