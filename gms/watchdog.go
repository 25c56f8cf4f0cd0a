package gms

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/detect"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// Bounds of a report.
const (
	maxReport  = 2 << 10
	maxReason  = 1 << 10
	reportWord = "fencepost report\n" // before what is signed
)

// reports is this process's count of them.
type reports struct {
	mu  sync.Mutex
	seq uint64
}

func (r *reports) next() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	return r.seq
}

// AnnounceObservedFailure says that this watchdog saw a run die: of node, run as hex, or its present one when run is empty.
// It is for the role watchdog only (ErrRole). The leader believes nothing of it: it pings the run at once, and closes it by
// what it finds out itself (PROTOCOL.md 3), in milliseconds when the run's host refuses its ports, else as silence. nil: the
// run answers nothing and is looked into, or is closed by now. ErrAlive: it answers, and nothing was done. ErrUnknownMember:
// there is no such run. ErrTooLarge: the reason has more than 1 KiB. It blocks until a leader has answered, or ctx ends:
// ErrNoQuorum.
func (g *Group) AnnounceObservedFailure(ctx context.Context, node, run, reason string) error {
	what := "report the failure of " + node
	if g.cfg.Role != signals.Watchdog {
		return fmt.Errorf("%s: %w: only a watchdog reports", what, ErrRole)
	}
	s := g.standingNow()
	if s == nil {
		return fmt.Errorf("%s: %w", what, ErrNoQuorum)
	}
	id, err := g.reportedRun(node, run)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if len(reason) > maxReason {
		return fmt.Errorf("%s: reason of %d bytes: %w", what, len(reason), ErrTooLarge)
	}
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		changed := g.leaderChanged()
		// Each try counts: one whose answer was lost has only had the leader look.
		r, err := g.signReport(&wire.Report{ClusterId: g.cluster(), By: s.run.Bytes(), Seq: g.reports.next(), Run: id.Bytes(), Reason: reason})
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if over, err := g.sendReport(ctx, r); over {
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		}
		if !pause(ctx, changed, backoff) {
			return fmt.Errorf("%s: %w: %w", what, ErrNoQuorum, context.Cause(ctx))
		}
	}
}

// reportedRun is the run that is meant.
func (g *Group) reportedRun(node, run string) (state.RunID, error) {
	open, ok := g.rep.open(node)
	if run == "" {
		if !ok {
			return state.RunID{}, ErrUnknownMember
		}
		return open.ID, nil
	}
	id, err := parseRun(run)
	if err != nil {
		return id, err
	}
	g.rep.read(func(m *state.Machine) {
		if r, known := m.Run(id); known && r.Node() != node {
			err = fmt.Errorf("%w: the run is one of %s", ErrUnknownMember, r.Node())
		}
	})
	return id, err
}

func (g *Group) signReport(r *wire.Report) (*wire.ReportRequest, error) {
	data, err := proto.Marshal(r)
	if err != nil {
		return nil, err
	}
	return &wire.ReportRequest{Report: data, Signature: ed25519.Sign(g.home.key, append([]byte(reportWord), data...))}, nil
}

// sendReport asks the leader, or somebody who may know it; over when the report is decided.
func (g *Group) sendReport(ctx context.Context, r *wire.ReportRequest) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	node := g.leaderHint()
	if node == "" {
		node = g.bystander("")
	}
	c, err := g.client(node)
	if err != nil {
		return false, err
	}
	reply, err := c.Report(ctx, r)
	if err != nil {
		g.log.Debug("gms: report not brought", "through", node, "error", err)
		return false, err
	}
	switch reply.GetOutcome() {
	case wire.ReportReply_OUTCOME_TAKEN, wire.ReportReply_OUTCOME_CLOSED:
		return true, nil
	case wire.ReportReply_OUTCOME_ALIVE:
		return true, ErrAlive
	case wire.ReportReply_OUTCOME_UNKNOWN:
		return true, ErrUnknownMember
	case wire.ReportReply_OUTCOME_REFUSED:
		return true, errors.New(reply.GetWhy())
	}
	return false, nil
}

// Report takes a watchdog's report while this node leads, or passes it on once.
func (h handler) Report(ctx context.Context, r *wire.ReportRequest) (*wire.ReportReply, error) {
	leader := h.g.leaderHint()
	undecided := &wire.ReportReply{Outcome: wire.ReportReply_OUTCOME_UNDECIDED, Why: "no leader is known here", Leader: leader}
	if l := h.g.leadingNow(); l != nil {
		return l.reported(ctx, r), nil
	}
	if r.GetPassedOn() || leader == "" || leader == h.g.cfg.Node {
		return undecided, nil
	}
	c, err := h.g.client(leader)
	if err != nil {
		return undecided, nil
	}
	return c.Report(ctx, &wire.ReportRequest{Report: r.GetReport(), Signature: r.GetSignature(), PassedOn: true})
}

// reported judges a report. It closes nobody: who answers a ping lives, and of who does not it is a hint like any other.
func (l *leading) reported(ctx context.Context, r *wire.ReportRequest) *wire.ReportReply {
	reply := func(o wire.ReportReply_Outcome, why string) *wire.ReportReply {
		return &wire.ReportReply{Outcome: o, Why: why, Leader: l.g.cfg.Node}
	}
	report, by, err := l.verifyReport(r)
	if err != nil {
		l.g.log.Warn("gms: report refused", "by", by.Node(), "why", err.Error())
		return reply(wire.ReportReply_OUTCOME_REFUSED, err.Error())
	}
	id, _ := state.RunIDOf(report.GetRun())
	var run state.Run
	l.g.rep.read(func(m *state.Machine) { run, _ = m.Run(id) })
	log := l.g.log.With("by", by.Node(), "node", run.Node(), "run", id.String(), "reason", report.GetReason())
	switch {
	case run.Open == nil:
		log.Warn("gms: report refused", "why", "no such run is known")
		return reply(wire.ReportReply_OUTCOME_UNKNOWN, "no such run is known")
	case !run.IsOpen():
		return reply(wire.ReportReply_OUTCOME_CLOSED, "the run is closed")
	case l.g.ping(ctx, run):
		log.Warn("gms: report refused", "why", "the run answers")
		return reply(wire.ReportReply_OUTCOME_ALIVE, "the run answers")
	}
	log.Warn("gms: reported dead, and it answers no ping")
	l.follow()
	if run.Open.GetOwnInterface() && !l.g.cfg.NoRefused && l.g.probe(ctx, run).Refused {
		// Its session may only seem to go on. If it lives after all, it comes back at once, and then nothing is proven.
		l.g.server.Drop(run.ID.Bytes())
	}
	l.step(detect.Event{Kind: detect.Reported, Run: detect.RunID(id)})
	return reply(wire.ReportReply_OUTCOME_TAKEN, "")
}

// Why a report is refused.
var (
	errNoReport    = errors.New("not a report of this group")
	errNoWatchdog  = errors.New("its sender is not an open run of a watchdog")
	errNotItsWord  = errors.New("not signed by that watchdog's node")
	errSeenAlready = errors.New("it was seen before")
)

// verifyReport tells whose report it is, and that it is new to this leader.
func (l *leading) verifyReport(r *wire.ReportRequest) (*wire.Report, state.Run, error) {
	report := &wire.Report{}
	if len(r.GetReport()) > maxReport || proto.Unmarshal(r.GetReport(), report) != nil || string(report.GetClusterId()) != string(l.g.cluster()) {
		return nil, state.Run{}, errNoReport
	}
	id, _ := state.RunIDOf(report.GetBy())
	var by state.Run
	l.g.rep.read(func(m *state.Machine) { by, _ = m.Run(id) })
	if by.Open == nil || !by.IsOpen() || by.Open.GetRole() != wire.Role_ROLE_WATCHDOG {
		return nil, state.Run{}, errNoWatchdog
	}
	key := by.Open.GetNodeKey()
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, append([]byte(reportWord), r.GetReport()...), r.GetSignature()) {
		return nil, by, errNotItsWord
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if report.GetSeq() <= l.heard[id] {
		return nil, by, errSeenAlready
	}
	l.heard[id] = report.GetSeq()
	for other := range l.heard {
		if _, open := l.runs[other]; !open && other != id {
			delete(l.heard, other)
		}
	}
	return report, by, nil
}
