package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost/fencepost/cmd/internal/bench/locks"
)

const zooKeeperKind = "zookeeper"

// zooKeeperJar is where Debian's libzookeeper-java has it, with a manifest that names what it needs.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

// zooKeeperConfig is what one server's process is told.
type zooKeeperConfig struct {
	ID          int
	Dir, Client string
	Servers     []string // the lines of zoo.cfg that name all of them
}

// serveZooKeeper is one server: a Java machine below this process, which ends with it.
func serveZooKeeper(ctx context.Context, text []byte, ready func()) error {
	var c zooKeeperConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	file, err := c.write()
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(c.Dir, "log"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, "java", "-Dzookeeper.admin.enableServer=false", "-cp", zooKeeperJar,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	for !answers(c.Client) {
		select {
		case err := <-ended:
			words, _ := os.ReadFile(out.Name())
			return fmt.Errorf("ZooKeeper has ended: %w\n%s", err, words)
		case <-ctx.Done():
			<-ended
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	ready()
	err = <-ended
	if ctx.Err() != nil {
		return nil // as asked
	}
	return err
}

// write makes the directory and the files of one server, and says which it is started with.
func (c zooKeeperConfig) write() (file string, err error) {
	host, port, err := net.SplitHostPort(c.Client)
	if err != nil {
		return "", err
	}
	lines := append([]string{
		"tickTime=2000", "initLimit=10", "syncLimit=5", "maxClientCnxns=0", "4lw.commands.whitelist=srvr",
		"dataDir=" + c.Dir, "clientPortAddress=" + host, "clientPort=" + port,
	}, c.Servers...)
	file = filepath.Join(c.Dir, "zoo.cfg")
	return file, errors.Join(os.MkdirAll(c.Dir, 0o700),
		os.WriteFile(filepath.Join(c.Dir, "myid"), fmt.Appendf(nil, "%d\n", c.ID), 0o600),
		os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// answers says whether a server has a leader: until then it refuses to say what it is.
func answers(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return false
	}
	text := make([]byte, 1024)
	for n := 0; n < len(text); {
		more, err := conn.Read(text[n:])
		n += more
		if strings.Contains(string(text[:n]), "Mode: ") {
			return true
		}
		if err != nil {
			return false
		}
	}
	return false
}

// zooKeeperPeer is three servers; each client has a connection of its own, which is ZooKeeper's session.
type zooKeeperPeer struct {
	addresses []string
	servers   func() error
}

func startZooKeeper(_ context.Context, dir string) (*zooKeeperPeer, error) {
	at, err := locks.FreeAddresses(9)
	if err != nil {
		return nil, err
	}
	var lines []string
	for i := range 3 {
		_, election, err := net.SplitHostPort(at[6+i])
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("server.%d=%s:%s", i+1, at[3+i], election))
	}
	var configs []zooKeeperConfig
	for i := range 3 {
		configs = append(configs, zooKeeperConfig{ID: i + 1, Dir: filepath.Join(dir, fmt.Sprint(i+1)), Client: at[i], Servers: lines})
	}
	stop, err := locks.SpawnAll(zooKeeperKind, configs)
	if err != nil {
		return nil, err
	}
	return &zooKeeperPeer{addresses: at[:3], servers: stop}, nil
}

func (z *zooKeeperPeer) stop() error { return z.servers() }

// sessionTimeout is what a client asks for; the servers allow 2 to 20 ticks.
const sessionTimeout = 10 * time.Second

type silent struct{}

func (silent) Printf(string, ...any) {}

func (z *zooKeeperPeer) Client(ctx context.Context) (locks.Client, error) {
	conn, events, err := zk.Connect(z.addresses, sessionTimeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return zooKeeperClient{conn}, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, ctx.Err()
		}
	}
}

type zooKeeperClient struct{ conn *zk.Conn }

func (c zooKeeperClient) TryLock(ctx context.Context, name string) (locks.Unlock, error) {
	return c.Lock(ctx, name)
}

func (c zooKeeperClient) Lock(_ context.Context, name string) (locks.Unlock, error) {
	l := zk.NewLock(c.conn, "/"+name, zk.WorldACL(zk.PermAll))
	return func(context.Context) error { return l.Unlock() }, l.Lock()
}

func (c zooKeeperClient) Close() error {
	c.conn.Close()
	return nil
}
