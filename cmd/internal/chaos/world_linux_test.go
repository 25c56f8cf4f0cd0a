package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// world is a group with all that is around it.
type world struct {
	t    testing.TB
	ctx  context.Context
	dir  string
	plan plan
	net  *network
	said *chronicle

	nodes, guests []string // names; a node may be one that has not joined yet
	base          *base
	store         *store
	box           *dropboxtest.Server
	resource      far
	storages      string // YAML
	disk          string // directory of the local storage

	mu      sync.Mutex
	clients map[string]*api.Client
	procs   map[string]*process // node or guest → its warden or itself, while it is wanted
	down    map[string]int      // node or guest → faults that want it not to run
	joins   map[string]bool     // nodes that found nothing and only join
	moving  bool                // a voter is on its way out
}

// host of a node or of a guest: n2 and h2 are on one.
func (w *world) host(name string) *host { return w.net.hosts["n"+name[1:]] }

// newWorld starts everything but the group.
func newWorld(t testing.TB, ctx context.Context, p plan) *world {
	t.Helper()
	dir, err := tempDir("")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, ctx: ctx, dir: dir, plan: p, said: newChronicle(), guests: []string{"h1", "h2", "h3"},
		clients: map[string]*api.Client{}, procs: map[string]*process{}, down: map[string]int{}, joins: map[string]bool{},
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if w.net, err = newNetwork(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, left := range w.net.close() {
			t.Errorf("left behind on host %s", left)
		}
	})
	for i := range p.Nodes + 1 { // the last one joins later, if at all
		w.nodes = append(w.nodes, fmt.Sprint("n", i+1))
		w.must(w.newHost(w.nodes[i], i+1))
	}
	w.must(w.certify())
	w.must(w.startBase())
	w.must(w.startDisk())
	w.must(w.startStore())
	w.must(w.startBox())
	w.must(w.startResource())
	for _, name := range w.nodes {
		w.must(w.configure(name))
	}
	return w
}

func (w *world) newHost(name string, number int) error {
	_, err := w.net.add(name, number)
	return err
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) in(file string) string { return filepath.Join(w.dir, file) }

// certify makes what keeps strangers out, as init does.
func (w *world) certify() error {
	_, err := offline.NewAuthority(w.dir, "fencepost", offline.AuthorityValid)
	for _, name := range append(slices.Clone(w.nodes), w.guests...) {
		_, issued := offline.IssueCert(w.dir, "fencepost", name, offline.NodeValid)
		err = errors.Join(err, issued)
	}
	key, drawn := offline.NewGossipKey()
	return errors.Join(err, drawn, os.WriteFile(w.in("gossip.key"), []byte(configs.FormatGossipKey(key)), 0o600))
}

// startDisk mounts the small disk of the local storage, so that it can be filled; without the right to, it is a directory.
func (w *world) startDisk() error {
	w.disk = w.in("disk")
	if err := os.Mkdir(w.disk, 0o700); err != nil {
		return err
	}
	if err := mountDisk(w.disk); err != nil {
		w.said.add(aside, "the local storage has no disk of its own: %v", err)
		return nil
	}
	w.t.Cleanup(func() { w.must(syscall.Unmount(w.disk, 0)) })
	return nil
}

func (w *world) startResource() error {
	h, err := w.net.add("res", 203)
	if err != nil {
		return err
	}
	address := h.addr + ":8000"
	if _, err := w.net.start(h, w.in("resource.log"), []string{resourceEnv + "=" + address}, os.Args[0]); err != nil {
		return err
	}
	w.t.Cleanup(func() { w.net.die(h) })
	w.resource = far{"http://" + address, &http.Client{Timeout: 5 * time.Second}}
	return w.await("the resource answers", func() error { _, err := w.resource.told(w.ctx); return err })
}

// await calls again and again, until there is no error.
func (w *world) await(what string, try func() error) error {
	limited, cancel := context.WithTimeout(w.ctx, 2*time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, errors.Join(err, context.Cause(limited)))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// diskSize is so small that it can be filled in a moment.
const diskSize = "size=192m"

func mountDisk(dir string) error { return syscall.Mount("fencepost", dir, "tmpfs", 0, diskSize) }

// mounted tells whether a directory is on another file system than its parent.
func mounted(dir string) bool {
	var here, above syscall.Stat_t
	if syscall.Stat(dir, &here) != nil || syscall.Stat(filepath.Dir(dir), &above) != nil {
		return false
	}
	return here.Dev != above.Dev
}

// configure writes a node's configuration.
func (w *world) configure(name string) error {
	h := w.net.hosts[name]
	founders := w.nodes[:w.plan.Nodes]
	in := w.in
	var b strings.Builder
	fmt.Fprintf(&b, "node: %s\nhome: %s\nprofile: lan\nseeds: [%s]\nlabels: []\n", name, in(name), strings.Join(w.seeds(name), ", "))
	if slices.Contains(founders, name) && !w.joins[name] {
		fmt.Fprintf(&b, "bootstrap: [%s]\n", strings.Join(founders, ", "))
	}
	fmt.Fprintf(&b, "gossip: {bind: \"%s:7946\"}\ncluster: {bind: \"%s:7947\"}\nadmin: {socket: %s}\n", h.addr, h.addr, w.socket(name))
	fmt.Fprintf(&b, "security: {certificate_file: %s, key_file: %s, ca_file: %s, gossip_key_file: %s}\n", in(name+".pem"), in(name+".key"), in("ca.pem"), in("gossip.key"))
	fmt.Fprintf(&b, "raft: {voters: %d, snapshot_threshold: 256}\nrecovery: {fence_ttl: %v, max_attempts: %d}\n", w.plan.Voters, fenceTTL, attempts)
	b.WriteString("backup: {rate_limit: 1MiB, max_attempts: 100, delete_delay: 0s, stall_after: 30s}\nrestore: {keep_old: 0s, start_within: 2h}\nstop: {grace: 3s}\n")
	b.WriteString("log: {level: debug, format: json}\n")
	if !w.plan.Bare {
		fmt.Fprintf(&b, "storages:\n%s", w.storages)
		fmt.Fprintf(&b, "databases:\n- {name: shop, dsn: %q, globals: none}\n", w.base.dsn("shop"))
		b.WriteString("schedules:\n- {name: minutely, kind: backup, database: shop, cron: \"@every 1m\", missed: all, overlap: queue}\n")
	}
	if w.plan.Postgres {
		fmt.Fprintf(&b, "ledger: {dsn: %q}\n", w.base.dsn("ledger"))
	}
	return os.WriteFile(in(name+".yaml"), []byte(b.String()), 0o600)
}

// seeds are the gossip addresses of all founders but one.
func (w *world) seeds(but string) (list []string) {
	for _, name := range w.nodes[:w.plan.Nodes] {
		if name != but {
			list = append(list, w.net.hosts[name].addr+":7946")
		}
	}
	return list
}

func (w *world) socket(name string) string { return w.in(name + ".sock") }

// client is the same one for each call: those who poll must not leave a connection each time.
func (w *world) client(name string) *api.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clients[name]
	if c == nil {
		c = api.NewClient(w.socket(name))
		w.clients[name] = c
		w.t.Cleanup(c.Close)
	}
	return c
}

// launch starts a node, under its warden, or a host app.
func (w *world) launch(name string) error {
	h, program, args := w.host(name), daemon, []string{"--config", w.in(name + ".yaml")}
	env := []string{"CHAOS_DISK=" + w.in(name+".disk"), "CHAOS_CLOCK=" + w.in(name+".clock")}
	if name[0] == 'h' {
		setup, err := json.Marshal(guestSetup{
			Node: name, Address: h.addr, Dir: w.dir, Resource: w.resource.url, Seeds: w.seeds(""), Voters: w.plan.Voters, Seed: w.plan.Seed,
		})
		if err != nil {
			return err
		}
		env, program, args = []string{guestEnv + "=" + string(setup)}, os.Args[0], nil
	}
	p, err := w.net.start(h, w.in(name+".log"), env, program, args...)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	w.mu.Lock()
	w.procs[name] = p
	w.mu.Unlock()
	return nil
}

// keep looks after everybody who should run and does not: what ended by itself is started again. It ends with ctx.
func (w *world) keep(ctx context.Context) {
	for ctx.Err() == nil {
		for _, name := range w.everybody() {
			w.mu.Lock()
			p, wanted := w.procs[name], w.down[name] == 0
			w.mu.Unlock()
			if wanted && (p == nil || ended(p)) {
				if p != nil {
					w.said.add(aside, "%s is started again", name)
				}
				if err := w.launch(name); err != nil && ctx.Err() == nil {
					w.t.Error(err)
				}
			}
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// everybody lists nodes and host apps; the node that joins later only once it has.
func (w *world) everybody() []string {
	list := append(slices.Clone(w.nodes[:w.plan.Nodes]), w.guests...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if late := w.nodes[w.plan.Nodes]; w.procs[late] != nil {
		list = append(list, late)
	}
	return list
}

func ended(p *process) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// want has a node or host app run, or not; several faults may want it not to.
func (w *world) want(name string, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down[name] -= by
}

func (w *world) process(name string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.procs[name]
}

// alive is a node that answers, any but those named; "" when none does.
func (w *world) alive(ctx context.Context, but ...string) (name string, view api.View) {
	for _, n := range w.nodes[:w.plan.Nodes] {
		if slices.Contains(but, n) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		v, err := w.client(n).View(limited)
		cancel()
		if err == nil && v.Leader != "" {
			return n, v
		}
	}
	return "", view
}

// stopAll ends everybody in order.
func (w *world) stopAll() {
	for _, name := range w.everybody() {
		w.want(name, -1)
		if p := w.process(name); p != nil {
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, name := range w.everybody() {
		p := w.process(name)
		if p == nil {
			continue
		}
		select {
		case <-p.done:
		case <-time.After(90 * time.Second):
			w.t.Errorf("%s does not end a minute and a half after SIGTERM", name)
			w.net.die(w.host(name))
		}
	}
}
