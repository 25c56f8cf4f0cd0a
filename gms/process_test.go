package gms

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// processEnv, when set, makes this program one node of a group: its value is a processConfig as JSON.
const processEnv = "FENCEPOST_TEST_PROCESS"

// processConfig is what a node's process needs of its Config.
type processConfig struct {
	Node, Home, Gossip, Cluster string
	Bootstrap, Seeds            []string
}

// event is one line that a node's process says.
type event struct {
	Node     string // who says it
	What     string // standing, failure, appointed, raised
	About    string // node
	Run      string // of whom it is about
	Evidence string
	Leader   string
	Token    uint64
	At       time.Time
}

// runProcess is the main of a node's process: it acquires and releases what it is appointed to, and says what it sees,
// until its standard input ends.
func runProcess() int {
	var c processConfig
	if err := json.Unmarshal([]byte(os.Getenv(processEnv)), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	cfg := Config{
		Group: "test", Node: c.Node, Home: c.Home, Bootstrap: c.Bootstrap, Seeds: c.Seeds,
		Gossip: Endpoint{Bind: c.Gossip}, Cluster: Endpoint{Bind: c.Cluster},
	}
	if err := runNode(cfg); err != nil {
		fmt.Fprintln(os.Stderr, cfg.Node, err)
		return 1
	}
	return 0
}

func runNode(cfg Config) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out sync.Mutex
	say := func(e event) {
		out.Lock()
		defer out.Unlock()
		e.Node, e.At = cfg.Node, time.Now()
		_ = json.NewEncoder(os.Stdout).Encode(e) // the parent is gone, or reads
	}
	router := signals.NewRouter(signals.Options{})
	hear := signals.Handle(func(_ context.Context, s signals.Signal) error {
		if f := s.Facts(); f.Kind == signals.FailureNotification {
			say(event{What: "failure", About: f.Member.Node, Run: f.Member.Run, Evidence: string(f.Evidence)})
		}
		return nil
	})
	if err := errors.Join(router.AddActionFactory(hear), router.AddRecoveryFactory("work", hear), router.Start(ctx)); err != nil {
		return err
	}
	defer router.Stop()
	cfg.Router = router
	g, err := New(cfg)
	if err != nil {
		return err
	}
	if err := g.Start(ctx); err != nil {
		return err
	}
	if err := g.AwaitStanding(ctx); err != nil {
		return err
	}
	_, run := g.Self()
	say(event{What: "standing", Run: run})
	go watchLeader(ctx, g, say)
	go acquireAll(ctx, g, say)
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	return g.Stop(stop, "work")
}

func watchLeader(ctx context.Context, g *Group, say func(event)) {
	last := ""
	for ctx.Err() == nil {
		changed := g.leaderChanged()
		if l := g.Leader(); l != last && len(g.View().Members) == 3 {
			last = l
			say(event{What: "leader", Leader: l})
		}
		pause(ctx, changed, 50*time.Millisecond)
	}
}

func acquireAll(ctx context.Context, g *Group, say func(event)) {
	done := map[uint64]bool{}
	for ctx.Err() == nil {
		list, changed := g.Recoveries()
		_, self := g.Self()
		for _, r := range list {
			if r.Appointee != self || done[r.Index] {
				continue
			}
			done[r.Index] = true
			say(event{What: "appointed", About: r.Node, Run: r.Run, Evidence: string(r.Evidence)})
			f, err := g.AcquireFence(ctx, r.Appointment)
			if err != nil {
				fmt.Fprintln(os.Stderr, "acquire:", err)
				continue
			}
			say(event{What: "raised", About: r.Node, Run: r.Run, Token: f.Token})
			if err := g.ReleaseFence(ctx, r.Appointment, f.Token); err != nil {
				fmt.Fprintln(os.Stderr, "release:", err)
			}
			say(event{What: "released", About: r.Node, Run: r.Run, Token: f.Token})
		}
		pause(ctx, changed, time.Second)
	}
}

// processes are nodes of a group, each a process of its own.
type processes struct {
	t      *testing.T
	ctx    context.Context
	events chan event
	seen   []event
	cmds   map[string]*exec.Cmd
	stdin  map[string]io.Closer
	reads  sync.WaitGroup
}

func startProcesses(t *testing.T, tg *testGroup) *processes {
	p := &processes{t: t, ctx: tg.ctx, events: make(chan event, 256), cmds: map[string]*exec.Cmd{}, stdin: map[string]io.Closer{}}
	t.Cleanup(p.stopAll)
	for _, name := range tg.names {
		cfg := tg.config(name)
		data, err := json.Marshal(processConfig{cfg.Node, cfg.Home, cfg.Gossip.Bind, cfg.Cluster.Bind, cfg.Bootstrap, cfg.Seeds})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), processEnv+"="+string(data))
		cmd.Stderr = os.Stderr
		stdout, err1 := cmd.StdoutPipe()
		stdin, err2 := cmd.StdinPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		p.cmds[name], p.stdin[name] = cmd, stdin
		p.reads.Go(func() {
			for lines := bufio.NewScanner(stdout); lines.Scan(); {
				var e event
				if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
					p.events <- e
				}
			}
		})
	}
	return p
}

// kill ends a process without a word.
func (p *processes) kill(name string) time.Time {
	p.t.Helper()
	at := time.Now()
	if err := p.cmds[name].Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	return at
}

func (p *processes) stopAll() {
	for _, in := range p.stdin {
		_ = in.Close() // a killed one has none
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.reads.Wait()
		for _, c := range p.cmds {
			_ = c.Wait() // a killed one says so
		}
	}()
	for {
		select {
		case <-p.events:
		case <-ended:
			return
		}
	}
}

// await gives the first event for which ok is true, of those seen and those to come.
func (p *processes) await(what string, ok func(event) bool) event {
	p.t.Helper()
	for i := 0; ; i++ {
		for i >= len(p.seen) {
			select {
			case e := <-p.events:
				p.seen = append(p.seen, e)
			case <-p.ctx.Done():
				p.t.Fatalf("waited in vain for %s; seen %+v", what, p.seen)
			}
		}
		if ok(p.seen[i]) {
			return p.seen[i]
		}
	}
}

// TestKilledProcess: a node's process is killed, a follower's or the leader's. Its host's refusal closes the run, long
// before its lease has run out; exactly one survivor is appointed and raises the fence.
func TestKilledProcess(t *testing.T) {
	for _, who := range []string{"follower", "leader"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			tg := newTestGroup(t, 3)
			p := startProcesses(t, tg)
			runs := map[string]string{}
			var leader string
			for _, name := range tg.names {
				runs[name] = p.await(name+" standing", func(e event) bool { return e.What == "standing" && e.Node == name }).Run
				leader = p.await("a leader at "+name, func(e event) bool { return e.What == "leader" && e.Node == name && e.Leader != "" }).Leader
			}
			victim := leader
			for _, name := range tg.names {
				if who == "follower" && name != leader {
					victim = name
				}
			}
			at := p.kill(victim)
			checkKilled(t, p, victim, runs[victim], at)
		})
	}
}

func checkKilled(t *testing.T, p *processes, victim, run string, at time.Time) {
	about := func(what string) func(event) bool {
		return func(e event) bool { return e.What == what && e.Run == run }
	}
	closed := p.await("the closing", about("failure"))
	raised := p.await("the fence", about("raised"))
	p.await("the release", about("released"))
	if closed.Evidence != string(signals.Refused) {
		t.Errorf("closed as %s", closed.Evidence)
	}
	for _, e := range p.seen {
		if e.Run == run && (e.What == "appointed" || e.What == "raised") && (e.Node != raised.Node || e.Token != 0 && e.Token != raised.Token) {
			t.Errorf("%s beside %s: %+v", e.Node, raised.Node, e)
		}
		if e.What == "failure" && e.Run != run {
			t.Errorf("another run was closed: %+v", e)
		}
	}
	if raised.Node == victim || strings.TrimSpace(raised.Node) == "" {
		t.Errorf("recovered by %q", raised.Node)
	}
	t.Logf("%s: closed after %v, fence raised after %v", victim, closed.At.Sub(at).Round(time.Millisecond), raised.At.Sub(at).Round(time.Millisecond))
}
