package consensus

import (
	"bytes"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func TestLoggerIsSober(t *testing.T) {
	var out bytes.Buffer
	l := &logger{slog: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))}
	named := l.Named("net").With("node", "a")
	named.Error("failed to commit logs", "error", "disk full")
	named.Error("failed to heartbeat to", "peer", "b", "error", "refused")
	named.Warn("rejecting vote request", "at", hclog.Fmt("%d/%d", 1, 2))
	named.Info("entering follower state")
	got := out.String()
	for _, want := range []string{"level=WARN msg=\"raft: failed to commit logs\" node=a error=\"disk full\"", "level=INFO msg=\"raft: rejecting vote request\" node=a at=1/2"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "heartbeat") || strings.Contains(got, "follower") || named.IsDebug() || !named.IsWarn() || named.Name() != "net" {
		t.Errorf("the levels are wrong:\n%s", got)
	}
}

func TestConfigIndexFollowsTheLog(t *testing.T) {
	var c configIndex
	logs := &notedLogs{LogStore: raft.NewInmemStore(), configs: &c}
	store := func(index uint64, kind raft.LogType) {
		t.Helper()
		if err := logs.StoreLog(&raft.Log{Index: index, Type: kind}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want uint64) {
		t.Helper()
		if got := c.latest(); got != want {
			t.Errorf("the latest configuration is at %d, not %d", got, want)
		}
	}
	expect(0)
	store(1, raft.LogConfiguration)
	store(2, raft.LogCommand)
	expect(1)
	store(3, raft.LogConfiguration)
	expect(3)
	if err := logs.DeleteRange(3, 3); err != nil { // another leader's log says otherwise
		t.Fatal(err)
	}
	expect(1)
	store(3, raft.LogCommand)
	if err := logs.DeleteRange(1, 2); err != nil { // a snapshot holds it
		t.Fatal(err)
	}
	expect(1)
	c.restored(9)
	expect(9)

	var again configIndex // a restart reads the log
	if err := (&notedLogs{LogStore: logs.LogStore, configs: &again}).GetLog(3, &raft.Log{}); err != nil {
		t.Fatal(err)
	}
	if got := again.latest(); got != 0 {
		t.Errorf("a command was taken for a configuration: %d", got)
	}
}

func TestPeerTableCountsOnlyLaterCallsOfTheTerm(t *testing.T) {
	p := newPeerTable()
	ids := []raft.ServerID{"b", "c"}
	before := p.begin()
	since := p.begin()
	after := p.begin()
	req := &raft.AppendEntriesRequest{Term: 4, PrevLogEntry: 10, Entries: []*raft.Log{{}, {}}}
	p.heard("b", "b", before, req)
	if n := p.answered(ids, 4, since); n != 0 {
		t.Errorf("an earlier call counts: %d", n)
	}
	p.heard("b", "b", after, req)
	p.heard("c", "c", after, &raft.AppendEntriesRequest{Term: 3})
	if n := p.answered(ids, 4, since); n != 1 {
		t.Errorf("%d peers have answered, not 1", n)
	}
	p.heard("b", "b", before, req) // a late answer takes nothing back
	if n := p.answered(ids, 4, since); n != 1 {
		t.Errorf("%d peers have answered, not 1", n)
	}
	if note, ok := p.get("b", 4); !ok || note.match != 12 {
		t.Errorf("the note of b is %+v, %v", note, ok)
	}
	if _, ok := p.get("c", 4); ok {
		t.Error("a note of an old term is given")
	}
}

// A notice says no more than its receiver is known to hold, in the term in which that is known, and is not repeated.
func TestNoticesSayNoMoreThanIsHeld(t *testing.T) {
	p := newPeerTable()
	header := raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a/home"), Addr: []byte("a")}
	entries := &raft.AppendEntriesRequest{
		RPCHeader: header, Term: 4, PrevLogEntry: 10, PrevLogTerm: 2, LeaderCommitIndex: 9,
		Entries: []*raft.Log{{Index: 11, Term: 3}, {Index: 12, Term: 4}},
	}
	p.heard("b", "at b", p.begin(), entries)
	p.heard("c", "at c", p.begin(), &raft.AppendEntriesRequest{RPCHeader: header, Term: 4, PrevLogEntry: 10, PrevLogTerm: 2, LeaderCommitIndex: 10})
	p.heard("d", "at d", p.begin(), &raft.AppendEntriesRequest{RPCHeader: header, Term: 3, PrevLogEntry: 12, PrevLogTerm: 3})
	if due := p.notify(5, 13, 0); due != nil {
		t.Errorf("notices of a term in which nobody has answered: %+v", due)
	}
	due := p.notify(4, 13, 0)
	if len(due) != 1 || due[0].id != "b" || due[0].to != "at b" {
		t.Fatalf("b holds two entries that it has not been told of, c none, d has answered another term: %+v", due)
	}
	want := &raft.AppendEntriesRequest{RPCHeader: header, Term: 4, PrevLogEntry: 12, PrevLogTerm: 4, LeaderCommitIndex: 12}
	if !reflect.DeepEqual(due[0].request, want) {
		t.Errorf("the notice is %+v, want %+v", due[0].request, want)
	}
	if due := p.notify(4, 13, 0); due != nil {
		t.Errorf("told again: %+v", due)
	}
	p.heard("c", "at c", p.begin(), entries)
	if due := p.notify(4, 11, 0); len(due) != 1 || due[0].id != "c" || due[0].request.LeaderCommitIndex != 11 {
		t.Errorf("c holds more now, of which 11 is committed: %+v", due)
	}
	if due := p.notify(4, 12, time.Hour); due != nil {
		t.Errorf("told a moment after the notice before: %+v", due)
	}
	p.heard("c", "at c", p.begin(), &raft.AppendEntriesRequest{RPCHeader: header, Term: 4, PrevLogEntry: 12, PrevLogTerm: 4, LeaderCommitIndex: 12})
	if due := p.notify(4, 12, 0); due != nil {
		t.Errorf("told of what the call before has said: %+v", due)
	}
}

// Who waits for an entry gets its notice within the pause: once it holds it, when it is committed, one time.
func TestAwaitedNoticesDoNotPause(t *testing.T) {
	p := newPeerTable()
	holds := func(to raft.ServerAddress, last, committed uint64) {
		p.heard(raft.ServerID(to), to, p.begin(), &raft.AppendEntriesRequest{Term: 4, PrevLogEntry: last, PrevLogTerm: 4, LeaderCommitIndex: committed})
	}
	holds("b", 11, 10)
	holds("c", 11, 10)
	if due := p.notify(4, 11, 0); len(due) != 2 {
		t.Fatalf("both hold 11: %+v", due)
	}
	p.want("b", 13)
	holds("b", 12, 11)
	holds("c", 13, 11)
	if due := p.notify(4, 13, time.Hour); due != nil {
		t.Errorf("b does not hold 13 yet, c does not wait: %+v", due)
	}
	holds("b", 13, 11)
	if due := p.notify(4, 12, time.Hour); due != nil {
		t.Errorf("13 is not committed yet: %+v", due)
	}
	if due := p.notify(4, 13, time.Hour); len(due) != 1 || due[0].id != "b" || due[0].request.LeaderCommitIndex != 13 {
		t.Errorf("b waits for 13: %+v", due)
	}
	holds("b", 14, 11)
	if due := p.notify(4, 14, time.Hour); due != nil {
		t.Errorf("b has had what it waits for: %+v", due)
	}
}

// The short cut of heartbeats past Raft's loop, and more than one call in flight, are off.
func TestTransportTakesNoShortCuts(t *testing.T) {
	c := newCluster(t)
	defer c.stop()
	c.form("a")
	tr := c.nodes["a"].trans
	tr.SetHeartbeatHandler(func(raft.RPC) { t.Error("the short cut was taken") })
	if _, err := tr.AppendEntriesPipeline("b", "b"); err != raft.ErrPipelineReplicationNotSupported {
		t.Errorf("pipelining: %v", err)
	}
	if _, err := tr.NetworkTransport.AppendEntriesPipeline("b", "b"); err != raft.ErrPipelineReplicationNotSupported {
		t.Errorf("the library's transport has more than one call in flight: %v", err)
	}
	heartbeat := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a/home"), Addr: []byte("a")}, Term: 99}
	var resp raft.AppendEntriesResponse
	if err := tr.AppendEntries("a/home", "a", heartbeat, &resp); err != nil {
		t.Fatal(err)
	}
	if !resp.Success {
		t.Errorf("the heartbeat was answered with %+v", resp)
	}
}

// Whatever a call says, it is refused unless its header names the node at the other end of its connection: a member that
// speaks for another one could lead, vote and overwrite in its name.
func TestNoCallSpeaksForAnotherServer(t *testing.T) {
	c := newCluster(t)
	defer c.stop()
	leader := c.form("a", "b", "c")
	from, to, third := "a", "b", "c"
	if leader != "a" {
		from, to, third = leader, "a", map[string]string{"b": "c", "c": "b"}[leader]
	}
	header := func(id, addr string) raft.RPCHeader {
		return raft.RPCHeader{ProtocolVersion: 3, ID: []byte(id), Addr: []byte(addr)}
	}
	tr := c.nodes[from].trans
	id, addr := raft.ServerID(serverID(to)), raft.ServerAddress(to)
	term := c.nodes[to].raft.Stats()["term"]
	for _, h := range []raft.RPCHeader{
		header(serverID(third), third), header(serverID(third), from), header(serverID(from), third), header("", ""), header(from+"x/home", from),
	} {
		calls := map[string]func() error{
			"append": func() error {
				var r raft.AppendEntriesResponse
				return tr.NetworkTransport.AppendEntries(id, addr, &raft.AppendEntriesRequest{RPCHeader: h, Term: 999}, &r)
			},
			"vote": func() error {
				var r raft.RequestVoteResponse
				return tr.RequestVote(id, addr, &raft.RequestVoteRequest{RPCHeader: h, Term: 999, LeadershipTransfer: true}, &r)
			},
			"prevote": func() error {
				var r raft.RequestPreVoteResponse
				return tr.RequestPreVote(id, addr, &raft.RequestPreVoteRequest{RPCHeader: h, Term: 999}, &r)
			},
			"timeout": func() error {
				var r raft.TimeoutNowResponse
				return tr.TimeoutNow(id, addr, &raft.TimeoutNowRequest{RPCHeader: h}, &r)
			},
			"snapshot": func() error {
				var r raft.InstallSnapshotResponse
				return tr.InstallSnapshot(id, addr, &raft.InstallSnapshotRequest{RPCHeader: h, Term: 999, Size: 3}, &r, strings.NewReader("xyz"))
			},
		}
		for name, call := range calls {
			if call() == nil {
				t.Errorf("%s as %q at %q was answered", name, h.ID, h.Addr)
			}
		}
	}
	if now := c.nodes[to].raft.Stats()["term"]; now != term {
		t.Errorf("the term went from %s to %s", term, now)
	}
	if _, _, err := c.nodes[from].Propose(t.Context(), []byte("x")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// What a dead process still writes never arrives, and its successor finds what was there before.
func TestMemStoresLoseTheWritesOfTheDead(t *testing.T) {
	m := NewMemStores()
	dead, err := m.open("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	entry := &raft.Log{Index: 1, Term: 1}
	if err := errors.Join(dead.logs.StoreLog(entry), dead.stable.SetUint64([]byte("term"), 1)); err != nil {
		t.Fatal(err)
	}
	m.Stall()
	m.Crash()
	if err := dead.logs.StoreLog(&raft.Log{Index: 2, Term: 1}); !errors.Is(err, errCrashed) {
		t.Errorf("an entry of the dead: %v", err)
	}
	if err := dead.logs.DeleteRange(1, 1); !errors.Is(err, errCrashed) {
		t.Errorf("a deletion by the dead: %v", err)
	}
	if err := errors.Join(dead.stable.SetUint64([]byte("term"), 2), dead.stable.Set([]byte("vote"), []byte("x"))); err != nil {
		t.Errorf("a vote of the dead: %v", err)
	}
	if _, err := dead.snaps.Create(1, 1, 1, raft.Configuration{}, 1, nil); !errors.Is(err, errCrashed) {
		t.Errorf("a snapshot by the dead: %v", err)
	}
	next, err := m.open("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	last, err := next.logs.LastIndex()
	term, terr := next.stable.GetUint64([]byte("term"))
	if last != 1 || term != 1 || errors.Join(err, terr) != nil {
		t.Errorf("the successor finds index %d and term %d: %v, %v", last, term, err, terr)
	}
	if err := next.logs.StoreLog(&raft.Log{Index: 2, Term: 1}); err != nil {
		t.Errorf("the successor writes: %v", err)
	}
}
