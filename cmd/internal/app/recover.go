package app

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Exit codes of the commands that work on a home while no daemon runs there.
const (
	exitFailed = 1
	exitUsage  = 2
	exitBusy   = 3
)

// homeFlags are what these commands have in common.
type homeFlags struct {
	*flag.FlagSet
	usage  string
	home   string
	config string
	format string
	stdout io.Writer
	stderr io.Writer
}

func newHomeFlags(name, usage string, stdout, stderr io.Writer) *homeFlags {
	f := &homeFlags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), usage: usage, stdout: stdout, stderr: stderr}
	f.SetOutput(stderr)
	f.StringVar(&f.home, "home", "", "the node's home, a `directory`")
	f.StringVar(&f.config, "config", "", "the node's configuration `file`, instead of --home")
	f.StringVar(&f.format, "o", "text", "how to print: text or json")
	f.Usage = func() {
		fmt.Fprintf(stderr, "usage: fencepostd %s\n", usage)
		f.PrintDefaults()
	}
	return f
}

// read parses the arguments, and the configuration when one is named; done tells that there is nothing more to do, with that
// exit code.
func (f *homeFlags) read(args []string) (cfg *configs.Config, code int, done bool) {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, 0, true
		}
		return nil, exitUsage, true
	}
	switch {
	case f.NArg() > 0:
		return nil, f.complain(fmt.Errorf("unexpected argument %q", f.Arg(0)), exitUsage), true
	case f.format != "text" && f.format != "json":
		return nil, f.complain(fmt.Errorf("-o %s: want text or json", f.format), exitUsage), true
	case (f.home == "") == (f.config == ""):
		return nil, f.complain(errors.New("either --home or --config says whose home it is"), exitUsage), true
	}
	if f.config == "" {
		return nil, 0, false
	}
	cfg, err := configs.Load(f.config)
	if err != nil {
		return nil, f.complain(err, exitUsage), true
	}
	f.home = cfg.Home
	return cfg, 0, false
}

func (f *homeFlags) complain(err error, code int) int {
	fmt.Fprintf(f.stderr, "fencepostd %s: %v\n", f.Name(), err)
	if code == exitUsage && HintOf(err, "") == "" {
		err = hint(err, "usage: fencepostd "+f.usage)
	}
	if remedy := HintOf(err, ""); remedy != "" {
		fmt.Fprintf(f.stderr, "hint: %s\n", remedy)
	}
	return code
}

// fail is complain with the code that the error stands for.
func (f *homeFlags) fail(err error) int {
	switch {
	case errors.Is(err, gms.ErrHomeInUse):
		return f.complain(err, exitBusy)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, gms.ErrNotFound), errors.Is(err, gms.ErrTooLarge):
		return f.complain(err, exitUsage)
	}
	return f.complain(err, exitFailed)
}

func (f *homeFlags) print(value any, text func(io.Writer)) int {
	if f.format != "json" {
		text(f.stdout)
		return 0
	}
	e := json.NewEncoder(f.stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return f.fail(err)
	}
	return 0
}

// survivor is what recover shows of a home.
type survivor struct {
	Group      string     `json:"group"`
	ClusterID  string     `json:"cluster_id"`
	Node       string     `json:"node"`
	Home       string     `json:"home"`
	Index      uint64     `json:"index"`
	Position   uint64     `json:"position"`
	Token      uint64     `json:"token"`
	Claims     int        `json:"claims"`
	Recoveries int        `json:"recoveries"`
	Others     []lostNode `json:"others"`
	Alone      bool       `json:"alone"` // it is the only node that votes
}

type lostNode struct {
	Node      string   `json:"node"`
	Voter     bool     `json:"voter"`
	Run       string   `json:"run,omitempty"` // that is open
	Addresses []string `json:"addresses"`
}

func survivorOf(h gms.Holding) survivor {
	s := survivor{
		Group: h.Group, ClusterID: h.ClusterID, Node: h.Node, Home: h.Home, Index: h.Index, Position: h.Numbers.Position, Token: h.Numbers.Token,
		Claims: h.Claims, Recoveries: h.Recoveries, Others: []lostNode{},
	}
	for _, n := range h.Nodes {
		if n.Node != h.Node {
			s.Others = append(s.Others, lostNode{n.Node, n.Voter, n.Run, n.Addresses})
		}
	}
	s.Alone = len(s.Others) == 0
	return s
}

func (s survivor) names() (list []string) {
	for _, n := range s.Others {
		list = append(list, n.Node)
	}
	return list
}

func (s survivor) text(w io.Writer) {
	fmt.Fprintf(w, "node %s of group %s (%s), home %s\n", s.Node, s.Group, s.ClusterID, s.Home)
	fmt.Fprintf(w, "its log ends at index %d, position %d, token %d: %d claims, %d open recoveries\n", s.Index, s.Position, s.Token, s.Claims, s.Recoveries)
	for _, n := range s.Others {
		what := "follows the log"
		if n.Voter {
			what = "votes"
		}
		if n.Run != "" {
			what += ", run " + n.Run + " is open"
		}
		fmt.Fprintf(w, "  %s %s, last at %s\n", n.Node, what, strings.Join(n.Addresses, " and "))
	}
}

// recoverQuorum is the command recover: one survivor goes on alone when the quorum is lost for good.
func recoverQuorum(args []string, stdout, stderr io.Writer) int {
	f := newHomeFlags("recover", "recover {--home DIR | --config FILE} [--dead NODE,NODE [--above N]] [-o json]", stdout, stderr)
	dead := f.String("dead", "", "the other `nodes`, with commas, all of which are gone for good; without it nothing is changed")
	above := f.Uint64("above", 0, "have positions and tokens go on above this `number`, too")
	cfg, code, done := f.read(args)
	if done {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	remains, err := gms.OpenRemains(f.home)
	if err != nil {
		return f.fail(err)
	}
	defer remains.Close()
	before := survivorOf(remains.Holding())
	if *dead == "" {
		return f.print(before, func(w io.Writer) {
			before.text(w)
			if before.Alone {
				fmt.Fprintln(w, "it is the only node that votes: start it")
				return
			}
			fmt.Fprintf(w, "nothing was changed. Of several homes that are left take the one with the highest index. If all other nodes are gone for\n"+
				"good, and only then: fencepostd recover --home %s --dead %s\n", f.home, strings.Join(before.names(), ","))
		})
	}
	if cfg != nil {
		seen, err := seenOutside(ctx, *cfg, before.ClusterID)
		if err != nil {
			return f.fail(hint(err, "with --home instead of --config nothing but the home is asked; a group that is behind its storages says so by itself"))
		}
		*above = max(*above, seen)
	}
	holding, err := remains.Alone(ctx, strings.Split(*dead, ","), *above)
	if err != nil {
		return f.fail(err)
	}
	after := survivorOf(holding)
	return f.print(after, func(w io.Writer) {
		after.text(w)
		fmt.Fprintf(w, "%s goes on alone, with numbers above %d. Start it: what the others had begun is recovered then.\n"+
			"Their homes are refused from now on; to let one come back, as a newcomer: fencepostd home reset --home DIR\n", after.Node, holding.Numbers.Base)
	})
}

// seenOutside is the highest number that the storages and the ledger of a configuration have seen.
func seenOutside(ctx context.Context, c configs.Config, cluster string) (high uint64, err error) {
	o := opened{storages: make(map[string]storage.Storage)}
	defer func() { err = errors.Join(err, o.closeAll()) }()
	for i, s := range c.Storages {
		st, closer, err := offline.OpenStorage(s, offline.Accounts{}, false, slog.New(slog.DiscardHandler))
		if err != nil {
			return 0, fmt.Errorf("storages[%d] %s: %w", i, s.Name, err)
		}
		o.storages[s.Name] = st
		o.close = append(o.close, closer)
	}
	if high, err = o.highest(ctx); err != nil || !c.Ledger.DSN.Given() {
		return high, err
	}
	dsn, err := c.Ledger.DSN.Resolve()
	if err != nil {
		return 0, fmt.Errorf("ledger.dsn: %w", err)
	}
	seen, err := ledgerdb.Highest(ctx, ledgerdb.Config{DSN: dsn, Cluster: cluster})
	return max(high, seen), err
}

// resetDone is what home reset has done.
type resetDone struct {
	Home string `json:"home"`
	Kept string `json:"kept"`
}

// resetHome is the command home reset: the node of a home comes back as a newcomer.
func resetHome(args []string, stdout, stderr io.Writer) int {
	const usage = "home reset {--home DIR | --config FILE} [-o json]"
	f := newHomeFlags("home reset", usage, stdout, stderr)
	if len(args) == 0 || args[0] != "reset" {
		return f.complain(errors.New("home needs to be told what to do"), exitUsage)
	}
	_, code, done := f.read(args[1:])
	if done {
		return code
	}
	kept, err := gms.ResetHome(f.home)
	if err != nil {
		return f.fail(err)
	}
	return f.print(resetDone{f.home, kept}, func(w io.Writer) {
		fmt.Fprintf(w, "%s is empty: its node comes as a newcomer, once `fencepost node replace NAME` was said on a member, or it was recovered from.\n"+
			"What was there is in %s; remove it when nobody misses it.\n", f.home, kept)
	})
}
