package gms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/consensus"
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Remains is the home of a node that does not run, opened to go on with it alone after the quorum was lost for good. What it
// holds then counts as decided, whether a majority had it or not.
type Remains struct {
	home *homeDir
	file groupFile
	log  *consensus.Remains
	rep  *replica
}

// Holding is what a home holds of its group.
type Holding struct {
	Group     string     // its name
	ClusterID string     // hex
	Node      string     // of this home; empty when its log knows the home no more
	Home      string     // hex
	Index     uint64     // of the last entry: of several survivors the one with the highest knows most
	Numbers   Numbers    // given out until that entry
	Nodes     []HeldNode // all nodes that have a part in the log or an open run, by name; this one included

	Recoveries int // that have not ended
	Claims     int // that are held, or wait for a recovery
}

// HeldNode is a node as a home knows it.
type HeldNode struct {
	Node      string   // its name
	Voter     bool     // by the last configuration of the log
	Run       string   // that is open, hex; empty: none
	Addresses []string // gossip and cluster, where it was last known to be
}

// OpenRemains opens a home whose node does not run. Nothing is written. Errors: ErrHomeInUse, fs.ErrNotExist, and what is wrong with
// the home. The caller calls Close.
func OpenRemains(dir string) (*Remains, error) {
	group, err := groupOfHome(dir)
	if err != nil {
		return nil, fmt.Errorf("open home %s: %w", dir, err)
	}
	h, file, err := openHome(dir, group)
	if err != nil {
		return nil, err
	}
	r := &Remains{home: h, file: file, rep: newReplica(SystemClock{}, func(error) {})}
	if r.log, err = consensus.OpenRemains(h.raftDir(), r.rep); err != nil {
		return nil, errors.Join(fmt.Errorf("open home %s: %w", dir, err), h.close())
	}
	formed := false
	r.rep.read(func(m *state.Machine) { formed = m.Formed() })
	if !formed {
		return nil, errors.Join(fmt.Errorf("open home %s: its log ends before the group was formed", dir), r.Close())
	}
	return r, nil
}

// groupOfHome is the name of the group that a home belongs to. It makes nothing where no home is.
func groupOfHome(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "group.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", withHint(fmt.Errorf("no home of a node that was part of a group is there: %w", err), "home: in the node's configuration says where it is")
	}
	if err != nil {
		return "", err
	}
	var f groupFile
	if err := json.Unmarshal(data, &f); err != nil {
		return "", fmt.Errorf("read group.json: %w", err)
	}
	return f.Group, nil
}

// Close closes the home. An error is one of the lock's file, and the home is closed all the same.
func (r *Remains) Close() error {
	r.log.Close()
	return r.home.close()
}

// Holding is what the home holds.
func (r *Remains) Holding() Holding {
	h := Holding{Group: r.file.Group, Home: r.home.idHex(), Index: r.log.Last()}
	nodes := map[string]*HeldNode{}
	of := func(name string) *HeldNode {
		if nodes[name] == nil {
			nodes[name] = &HeldNode{Node: name}
		}
		return nodes[name]
	}
	for _, s := range r.log.Servers() {
		own := parseServer(s.ID, s.Voter)
		if of(own.node).Voter = of(own.node).Voter || s.Voter; own.home == h.Home {
			h.Node = own.node
		}
	}
	r.rep.read(func(m *state.Machine) {
		h.ClusterID = hexID(m.ClusterID())
		h.Numbers = Numbers{Base: m.Base(), Position: m.Position(), Token: m.Counter()}
		h.Recoveries, h.Claims = len(m.Recoveries()), len(m.Claims(state.ClaimFilter{}))
		for _, n := range m.Nodes() {
			if hexID(n.GetHome()) == h.Home {
				h.Node = n.GetName()
			}
			if run, open := openRunOf(m, n.GetName()); open {
				held := of(n.GetName())
				held.Run, held.Addresses = run.ID.String(), append(held.Addresses, run.Open.GetGossipAddr(), run.Open.GetClusterAddr())
			}
		}
	})
	for name, held := range nodes {
		held.Addresses = append(held.Addresses, r.file.Peers[name], r.file.Cluster[name])
		slices.Sort(held.Addresses)
		held.Addresses = slices.DeleteFunc(slices.Compact(held.Addresses), func(a string) bool { return a == "" })
		h.Nodes = append(h.Nodes, *held)
	}
	slices.SortFunc(h.Nodes, func(a, b HeldNode) int { return strings.Compare(a.Node, b.Node) })
	return h
}

// answersWithin is how long a node that is said to be dead is listened for.
const answersWithin = 3 * time.Second

// Alone makes this home's node the only one that votes. dead are all the other nodes that it holds: their open runs are
// closed by an operator's word, what they had begun is recovered once the node is started, and their homes are refused until
// they are empty. The group's numbers go on above all that the home knows, above the present time in microseconds, and above
// above. Who is named and answers at its last known address is alive: ErrAlive, and nothing is changed. Nothing is changed
// either unless exactly the other nodes are named. It can be called again, also after it was interrupted.
func (r *Remains) Alone(ctx context.Context, dead []string, above uint64) (Holding, error) {
	const what = "go on alone"
	h := r.Holding()
	if h.Node == "" {
		return h, fmt.Errorf("%s: the home's log knows no node of this home: it was replaced or forgotten", what)
	}
	if err := namesAll(h, dead); err != nil {
		return h, fmt.Errorf("%s: %w", what, err)
	}
	if above >= MaxBase {
		return h, fmt.Errorf("%s with numbers above %d: %w: the highest base is %d", what, above, ErrTooLarge, uint64(MaxBase))
	}
	if err := answering(ctx, h, dead); err != nil {
		return h, fmt.Errorf("%s: %w", what, err)
	}
	base := min(max(above, uint64(time.Now().UnixMicro()), h.Numbers.High()+rebaseHeadroom)+1, MaxBase)
	cmds := []*wire.Command{{Op: &wire.Command_Rebase{Rebase: &wire.Rebase{Base: base, Reason: "the quorum was lost for good"}}}}
	for _, n := range h.Nodes {
		if n.Node == h.Node {
			continue
		}
		if n.Run != "" {
			id, err := parseRun(n.Run)
			if err != nil {
				return h, err
			}
			cmds = append(cmds, &wire.Command{Op: &wire.Command_CloseRun{CloseRun: &wire.CloseRun{
				Node: n.Node, Run: id.Bytes(), Evidence: wire.Evidence_EVIDENCE_OPERATOR, Detail: "the quorum was lost for good",
			}}})
		}
		cmds = append(cmds, &wire.Command{Op: &wire.Command_ReplaceHome{ReplaceHome: &wire.ReplaceHome{Node: n.Node}}})
	}
	entry, err := proto.Marshal(&wire.Entry{Version: r.rep.protocol(), Time: time.Now().UnixMilli(), Commands: cmds})
	if err != nil {
		return h, fmt.Errorf("%s: encode the entry: %w", what, err)
	}
	own := consensus.Server{ID: server{node: h.Node, home: h.Home}.id(), Address: h.Node, Voter: true}
	if err := r.log.Rewrite(entry, []consensus.Server{own}); err != nil {
		return h, fmt.Errorf("%s: %w", what, err)
	}
	after := r.Holding()
	if len(after.Nodes) != 1 {
		return after, fmt.Errorf("%s: runs of other nodes are still open", what) // not seen; the log refuses none of these
	}
	return after, nil
}

// namesAll tells whether dead are all nodes that the home holds but its own.
func namesAll(h Holding, dead []string) error {
	var others []string
	for _, n := range h.Nodes {
		if n.Node != h.Node {
			others = append(others, n.Node)
		}
	}
	for _, name := range dead {
		switch {
		case name == h.Node:
			return fmt.Errorf("%s is the node of this home", name)
		case !slices.Contains(others, name):
			return fmt.Errorf("the home knows no node %q", name)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(others), func(n string) bool { return slices.Contains(dead, n) })
	if len(missing) > 0 {
		return fmt.Errorf("not named as dead: %s; every other node must be gone for good", strings.Join(missing, ", "))
	}
	return nil
}

// answering is ErrAlive with the first of the dead that takes a connection.
func answering(ctx context.Context, h Holding, dead []string) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	var asking sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, n := range h.Nodes {
		if !slices.Contains(dead, n.Node) {
			continue
		}
		for _, address := range n.Addresses {
			asking.Go(func() {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w at %s", n.Node, ErrAlive, address), conn.Close())
			})
		}
	}
	asking.Wait()
	if err := errors.Join(errs...); err != nil {
		return withHint(err, "stop it first, or wait: as long as a majority can come back, nothing is to be recovered")
	}
	return nil
}

// ResetHome empties a home, so that its node comes as a newcomer: key, log and what it knows of its group are moved into
// a directory beside them, whose path is returned. Gossip keys stay, as does what is not the group's. Errors: ErrHomeInUse,
// ErrNotFound when there is nothing to empty.
func ResetHome(dir string) (kept string, err error) {
	what := "empty home " + dir
	if _, err := os.Stat(filepath.Join(dir, "node.key")); err != nil {
		return "", fmt.Errorf("%s: %w: %w", what, ErrNotFound, err)
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	kept = filepath.Join(dir, "reset-"+time.Now().UTC().Format("20060102T150405.000000000Z"))
	if err := os.Mkdir(kept, 0o700); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	for _, name := range []string{"raft", "group.json", "node.key"} { // the key last: with a log and without it a home is damaged
		err := os.Rename(filepath.Join(dir, name), filepath.Join(kept, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, fmt.Errorf("%s: %w", what, err)
		}
	}
	return kept, errors.Join(syncDir(kept), syncDir(dir))
}
