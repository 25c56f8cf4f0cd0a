package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/pgtest"
)

var (
	pg      pgtest.Shared
	daemon  string // the built fencepostd
	command string // the built fencepost
)

func TestMain(m *testing.M) { os.Exit(pg.Around(builtFirst{m}).Run()) }

// builtFirst builds the programs once, before the tests.
type builtFirst struct{ m *testing.M }

func (b builtFirst) Run() int {
	dir, err := os.MkdirTemp("", "fpbin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	daemon, command = filepath.Join(dir, "fencepostd"), filepath.Join(dir, "fencepost")
	build := exec.Command("go", "build", "-o", dir, "../../fencepostd", "../../fencepost")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return b.m.Run()
}

// cluster is a group of fencepostd processes.
type cluster struct {
	t     testing.TB
	ctx   context.Context
	dir   string
	names []string
	ports map[string]int
	dsns  map[string]string // database → DSN

	// watched: each node has its warden, which is then the process that is started here. Otherwise a node runs alone: its
	// death is that of the whole machine, nobody starts it again, and SIGSTOP reaches the node itself.
	watched bool

	storages string // see options
	servers  string // where throw-away servers are made; "" when there are none

	targets []string // names of databases that are restored

	// mustLive: no node ends but by the test's own hand; one that does fails the test at once, with its last words.
	mustLive bool

	mu      sync.Mutex
	procs   map[string]*proc
	clients map[string]*api.Client
}

type proc struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

// options of a cluster.
type options struct {
	nodes   int
	profile string            // default lan
	extra   string            // YAML for every node
	dsns    map[string]string // database → DSN
	watched bool              // by wardens
	level   string            // of the log; default debug
	lasting time.Duration     // how long everything may take; default 4 min

	port bool // each node serves the API on a port, with its certificate

	// storages is the YAML of the list, instead of the directories a and b.
	storages string

	lab bool // there is a throw-away scratch server, lab
}

func newCluster(t testing.TB, o options) *cluster {
	t.Helper()
	if o.lasting == 0 {
		o.lasting = 4 * time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.lasting)
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	if o.profile == "" {
		o.profile = "lan"
	}
	c := &cluster{t: t, ctx: ctx, dir: dir, ports: map[string]int{}, dsns: o.dsns, watched: o.watched, storages: o.storages, procs: map[string]*proc{}, clients: map[string]*api.Client{}}
	for _, dsn := range o.dsns {
		c.targets = append(c.targets, nameIn(t, dsn))
	}
	if o.lab {
		c.servers = serversDir(t)
	}
	t.Cleanup(func() {
		c.end()
		if t.Failed() {
			t.Logf("logs are in %s", c.saveLogs())
		}
		_ = os.RemoveAll(dir)
	})
	for _, s := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, s), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range o.nodes {
		name := fmt.Sprintf("n%d", i+1)
		c.names = append(c.names, name)
		c.ports[name+"/gossip"], c.ports[name+"/cluster"] = freePort(t), freePort(t)
		if o.port {
			c.ports[name+"/admin"] = freePort(t)
		}
	}
	if o.nodes > 0 {
		c.certify()
	}
	if o.level == "" {
		o.level = "debug"
	}
	for _, name := range c.names {
		c.write(name, o.profile, "log: {level: "+o.level+", format: json}\n"+o.extra)
	}
	return c
}

// serversDir is a folder that every user can make servers in, and in which none must be left.
func serversDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fps")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%d throw-away servers are left in %s", len(left), dir)
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

// certify makes what keeps strangers out, as init does.
func (c *cluster) certify() {
	c.t.Helper()
	_, err := offline.NewAuthority(c.dir, "fencepost", offline.AuthorityValid)
	for _, name := range c.names {
		_, issued := offline.IssueCert(c.dir, "fencepost", name, offline.NodeValid)
		err = errors.Join(err, issued)
	}
	key, drawn := offline.NewGossipKey()
	err = errors.Join(err, drawn, os.WriteFile(filepath.Join(c.dir, "gossip.key"), []byte(configs.FormatGossipKey(key)), 0o600))
	if err != nil {
		c.t.Fatal(err)
	}
}

// lastPort counts ports that tests were given. They lie below the range from which the system takes those of outgoing
// connections: one that was free a moment ago stays so.
var lastPort atomic.Int64

func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10000 + (os.Getpid()*997+int(lastPort.Add(1)))%20000
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		l.Close()
		u, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		u.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}

// write makes a node's configuration file.
func (c *cluster) write(name, profile, extra string) {
	c.t.Helper()
	var seeds []string
	for _, other := range c.names {
		if other != name {
			seeds = append(seeds, fmt.Sprintf("127.0.0.1:%d", c.ports[other+"/gossip"]))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "node: %s\nhome: %s\nprofile: %s\nbootstrap: [%s]\nseeds: [%s]\n", name, filepath.Join(c.dir, name), profile,
		strings.Join(c.names, ", "), strings.Join(seeds, ", "))
	fmt.Fprintf(&b, "gossip: {bind: \"127.0.0.1:%d\"}\ncluster: {bind: \"127.0.0.1:%d\"}\n", c.ports[name+"/gossip"], c.ports[name+"/cluster"])
	in := func(file string) string { return filepath.Join(c.dir, file) }
	fmt.Fprintf(&b, "security: {certificate_file: %s, key_file: %s, ca_file: %s, gossip_key_file: %s}\n",
		in(name+".pem"), in(name+".key"), in("ca.pem"), in("gossip.key"))
	admin := "socket: " + c.socket(name)
	if port := c.ports[name+"/admin"]; port != 0 {
		admin += fmt.Sprintf(", bind: \"127.0.0.1:%d\", certificate_file: %s, key_file: %s", port, in(name+".pem"), in(name+".key"))
	}
	fmt.Fprintf(&b, "admin: {%s}\n", admin)
	if c.storages == "" {
		c.storages = fmt.Sprintf("- {name: a, kind: local, path: %s}\n- {name: b, kind: local, path: %s}\n", in("a"), in("b"))
	}
	b.WriteString("storages:\n" + c.storages)
	if len(c.dsns) > 0 {
		b.WriteString("databases:\n")
	}
	if c.servers != "" {
		fmt.Fprintf(&b, "- {name: lab, scratch: true, dir: %s}\n", c.servers)
	}
	for db, dsn := range c.dsns {
		fmt.Fprintf(&b, "- {name: %q, dsn: %q}\n", db, dsn)
	}
	b.WriteString(extra)
	if err := os.WriteFile(c.file(name), []byte(b.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) file(name string) string   { return filepath.Join(c.dir, name+".yaml") }
func (c *cluster) socket(name string) string { return filepath.Join(c.dir, name+".sock") }

// client is the same one for each call: those who poll must not leave a connection each time.
func (c *cluster) client(name string) *api.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := c.clients[name]
	if client == nil {
		client = api.NewClient(c.socket(name))
		c.clients[name] = client
		c.t.Cleanup(client.Close)
	}
	return client
}

// start starts a node; its log is appended to.
func (c *cluster) start(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.startAs(daemon, name)
	}
}

// startAs starts a node of which the program is another than the one that is tested.
func (c *cluster) startAs(program, name string) {
	c.t.Helper()
	args := []string{"--config", c.file(name)}
	if !c.watched {
		args = append(args, "--no-warden")
	}
	p := startCommand(c.t, filepath.Join(c.dir, name+".log"), exec.Command(program, args...))
	c.mu.Lock()
	c.procs[name] = p
	c.mu.Unlock()
}

// startProc starts a daemon that writes into a log.
func startProc(t testing.TB, log string, args ...string) *proc {
	t.Helper()
	return startCommand(t, log, exec.Command(daemon, args...))
}

// startCommand starts a command that becomes a daemon.
func startCommand(t testing.TB, log string, cmd *exec.Cmd) *proc {
	t.Helper()
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr, cmd.Stdout = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &proc{cmd: cmd, done: make(chan struct{}), log: log}
	go func() { // ends with the process
		_ = cmd.Wait()
		f.Close()
		close(p.done)
	}()
	return p
}

func (c *cluster) proc(name string) *proc {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.procs[name]
	if p == nil {
		c.t.Fatalf("%s does not run", name)
	}
	return p
}

// running lists the nodes whose processes were started and not killed.
func (c *cluster) running() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, n := range c.names {
		if c.procs[n] != nil {
			names = append(names, n)
		}
	}
	return names
}

// up starts all nodes and waits until each is ready.
func (c *cluster) up() {
	c.t.Helper()
	c.start(c.names...)
	for _, name := range c.names {
		c.ready(name)
	}
}

func (c *cluster) ready(name string) {
	c.t.Helper()
	c.until(name+" is ready", func() bool {
		s, err := c.client(name).Status(c.ctx)
		return err == nil && s.Ready && s.Lease == "held"
	})
}

// until looks again and again whether something is so; the test fails when it is not within its time.
func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	for !ok() {
		if c.mustLive {
			c.alive()
		}
		select {
		case <-c.ctx.Done():
			c.t.Fatalf("waited in vain until %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// alive fails the test when a node has ended by itself.
func (c *cluster) alive() {
	c.t.Helper()
	for _, name := range c.running() {
		p := c.proc(name)
		select {
		case <-p.done:
			words, _ := os.ReadFile(p.log)
			c.t.Fatalf("%s has ended by itself: %s", name, lastLine(string(words)))
		default:
		}
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// kill ends a node and all its descendants at once, as the death of a machine does.
func (c *cluster) kill(name string) {
	c.t.Helper()
	p := c.proc(name)
	family := append([]int{p.cmd.Process.Pid}, descendants(p.cmd.Process.Pid)...)
	for _, pid := range family { // parents first: they must not see their children die
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.done
	c.mu.Lock()
	delete(c.procs, name)
	c.mu.Unlock()
}

func (c *cluster) stop(name string) {
	c.t.Helper()
	if err := c.proc(name).cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) resume(name string) {
	c.t.Helper()
	if err := c.proc(name).cmd.Process.Signal(syscall.SIGCONT); err != nil {
		c.t.Fatal(err)
	}
}

// descendants lists the children, and theirs, of a process.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		at := bytes.LastIndexByte(data, ')')
		f := strings.Fields(string(data[at+1:]))
		child, _ := strconv.Atoi(strings.Split(path, "/")[2])
		parent, _ := strconv.Atoi(f[1])
		children[parent] = append(children[parent], child)
	}
	var all []int
	for queue := children[pid]; len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return all
}

// end stops every node in order, and looks at what is left.
func (c *cluster) end() {
	c.mu.Lock()
	procs := c.procs
	c.procs = map[string]*proc{}
	c.mu.Unlock()
	for name, p := range procs {
		family := descendants(p.cmd.Process.Pid)
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(time.Minute):
			c.t.Errorf("%s does not end a minute after SIGTERM", name)
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		for _, pid := range family {
			if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(data) > 0 {
				c.t.Errorf("%s left a child: %q", name, data)
			}
		}
	}
	c.searchSecrets()
}

// searchSecrets fails the test when a log holds the server's password.
func (c *cluster) searchSecrets() {
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			c.t.Error(err)
		}
		if bytes.Contains(data, []byte(pg.Server(c.t).Password)) {
			c.t.Errorf("%s holds the database's password", path)
		}
	}
}

// saveLogs keeps the logs of a failed test.
func (c *cluster) saveLogs() string {
	keep, err := os.MkdirTemp("", "fplogs-"+strings.ReplaceAll(c.t.Name(), "/", "-")+"-")
	if err != nil {
		return err.Error()
	}
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	for _, path := range logs {
		if from, err := os.Open(path); err == nil {
			to, err := os.Create(filepath.Join(keep, filepath.Base(path)))
			if err == nil {
				_, _ = io.Copy(to, from)
				to.Close()
			}
			from.Close()
		}
	}
	return keep
}

// database makes an empty database and fills it by sql; cluster configurations name it shop.
func database(t testing.TB, sql ...string) string {
	t.Helper()
	dsn := pg.Server(t).Database(t)
	for _, s := range sql {
		execute(t, dsn, s)
	}
	return dsn
}

func execute(t testing.TB, dsn, sql string) {
	t.Helper()
	pg.Server(t).Exec(t, nameIn(t, dsn), sql)
}

// nameIn is the database that a DSN names.
func nameIn(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("a DSN of the test server is no URL")
	}
	return strings.TrimPrefix(u.Path, "/")
}

// bulk is SQL that makes a table of about that many megabytes that hardly compress.
func bulk(table string, mb int) string {
	return fmt.Sprintf(`CREATE TABLE %s AS SELECT i AS id, (SELECT string_agg(md5(i::text || j::text || random()::text), '') FROM generate_series(1, 32) j) AS body FROM generate_series(1, %d) i`, table, mb*1000)
}

// stored lists what a storage holds, by the kind of object: whole and void manifests, and data without either.
type stored struct{ whole, void, loose []string }

func (c *cluster) storage(name string) (s stored) {
	c.t.Helper()
	root := filepath.Join(c.dir, name)
	attempts := map[string]string{} // directory → what its manifest is
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, filepath.Join(root, "_fencepost")) {
			return err
		}
		dir := filepath.Dir(path)
		if filepath.Base(path) != "manifest.json" {
			attempts[dir] += ""
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		m, err := pipeline.DecodeManifest(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		attempts[dir] = "whole"
		if m.Void {
			attempts[dir] = "void"
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for dir, kind := range attempts {
		switch kind {
		case "whole":
			s.whole = append(s.whole, dir)
		case "void":
			s.void = append(s.void, dir)
		default:
			s.loose = append(s.loose, dir)
		}
	}
	return s
}

// clean checks that a check of the storages finds nothing that is not as it should be.
func (c *cluster) clean(by string, storages ...string) {
	c.t.Helper()
	for _, name := range storages {
		if out, err := c.fencepost(by, "storage", "check", name); err != nil {
			c.t.Errorf("storage check %s: %s%v", name, out, err)
		}
	}
}

// oneBackup checks that there is exactly one completed backup in the ledger, exactly one whole manifest in each storage,
// nothing loose, and that a check of the storages finds nothing else.
func (c *cluster) oneBackup(by string) api.Backup {
	c.t.Helper()
	list, err := c.client(by).Backups(c.ctx, api.BackupFilter{})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(list) != 1 || list[0].State != "completed" || len(list[0].Storages) != 2 {
		c.t.Fatalf("backups: %+v", list)
	}
	for _, name := range []string{"a", "b"} {
		if s := c.storage(name); len(s.whole) != 1 || len(s.loose) != 0 {
			c.t.Errorf("storage %s: %+v", name, s)
		}
	}
	c.clean(by, "a", "b")
	return list[0]
}

// noStrays checks that the server has no database that a restore of this cluster left.
func (c *cluster) noStrays() {
	c.t.Helper()
	for _, n := range c.newDatabases() {
		c.t.Errorf("stray database %s", n)
	}
}

// newDatabases lists the databases that restores of this cluster are filling; other tests share the server.
func (c *cluster) newDatabases() (list []string) {
	c.t.Helper()
	names, err := pg.Server(c.t).Databases(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, n := range names {
		at := strings.Index(n, "__fp_")
		if at < 0 {
			continue
		}
		for _, target := range c.targets {
			if len(n[:at]) > 0 && strings.HasPrefix(target, n[:min(at, 12)]) {
				list = append(list, n)
				break
			}
		}
	}
	return list
}

func print(t testing.TB, dsn string) pgtest.Print {
	t.Helper()
	p, err := pgtest.Fingerprint(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func same(t testing.TB, what string, a, b pgtest.Print) {
	t.Helper()
	for _, d := range pgtest.Diff(a, b) {
		t.Errorf("%s: %s", what, d)
	}
}
