package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Superuser is the name of the role that Start makes.
const Superuser = "postgres"

// Options say how a server is made. The zero value is good for tests.
type Options struct {
	// BinDir holds initdb and postgres; default: what BinDir() finds.
	BinDir string
	// Password of the superuser; default: a random one. Any characters but newlines.
	Password string
	// Durable syncs to disk as a real server does; default: it does not, and a crash of the machine loses the data.
	Durable bool
	// Settings are added to postgresql.conf's, by name; values in the syntax of the command line option -c.
	Settings map[string]string
}

// Server is a running private server. Its fields do not change; methods may be called from several goroutines.
type Server struct {
	Dir      string // where it lives; gone after Stop
	Port     int    // on 127.0.0.1
	Password string // of Superuser

	cmd      *exec.Cmd
	lifeline io.Closer
	ended    chan struct{} // closed when the server has ended, be it by itself
	stopOnce sync.Once
	stopErr  error

	databases atomic.Int64 // names given by Database
}

// startAttempts bounds how often another port is tried when somebody took the free one first.
const startAttempts = 5

// Start makes a server in dir and returns when it accepts connections. dir is made when missing and must be empty; ""
// makes one in memory (/dev/shm) when there is plenty and the data need not last, else in the system's temporary
// directory. When run as root, each parent of dir must let other users through. An error leaves nothing behind, dir
// neither. ctx bounds the start only; the caller ends the server with Stop.
func Start(ctx context.Context, dir string, o Options) (*Server, error) {
	bin := o.BinDir
	if bin == "" {
		var err error
		if bin, err = BinDir(); err != nil {
			return nil, err
		}
	}
	who, err := serverAccount(ctx)
	if err != nil {
		return nil, err
	}
	if o.Password == "" {
		o.Password = rand.Text()
	}
	if dir, err = makeDir(dir, tempDir(o.Durable), who); err != nil {
		return nil, err
	}
	if err := initDB(ctx, bin, dir, o.Password, who); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for attempt := 1; ; attempt++ {
		s, err := run(ctx, bin, dir, o, who)
		if err == nil {
			return s, nil
		}
		if attempt == startAttempts || ctx.Err() != nil || !errors.Is(err, errPortTaken) {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
}

// makeDir makes the server's directory, or takes an empty one, and gives it to the server's user.
func makeDir(dir, temp string, who *account) (string, error) {
	if dir == "" {
		made, err := os.MkdirTemp(temp, "pgtest-")
		if err != nil {
			return "", fmt.Errorf("make a directory for the server: %w", err)
		}
		return made, who.own(made)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the server's directory: %w", err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", fmt.Errorf("make the server's directory: %w", err)
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		return "", fmt.Errorf("look into the server's directory: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("directory %s for a private server is not empty", abs)
	}
	return abs, who.own(abs)
}

// initDB makes the data directory. The password goes through a file that only its user can read.
func initDB(ctx context.Context, bin, dir, password string, who *account) error {
	pwfile := filepath.Join(dir, "password")
	if err := os.WriteFile(pwfile, []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("hand the password to initdb: %w", err)
	}
	defer func() { _ = os.Remove(pwfile) }()
	if err := who.own(pwfile); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata="+filepath.Join(dir, "data"),
		"--username="+Superuser, "--pwfile="+pwfile, "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
	cmd.Dir = dir
	who.as(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a private server in %s (can its user reach that directory?): %w: %s", dir, err, bytes.TrimSpace(out))
	}
	return nil
}

var errPortTaken = errors.New("port was taken")

// run starts the server on a free port and waits until it answers.
func run(ctx context.Context, bin, dir string, o Options, who *account) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := keptCommand(dir, filepath.Join(bin, "postgres"), serverArgs(filepath.Join(dir, "data"), port, o))
	cmd.Dir = dir
	who.as(cmd)
	s := &Server{Dir: dir, Port: port, Password: o.Password, cmd: cmd, ended: make(chan struct{})}
	if s.lifeline, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a private server: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a private server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a private server: %w", err)
	}
	go func() { // ends with the first word or the end of the shell; Stop waits for it
		defer close(s.ended)
		_, _ = out.Read(make([]byte, 16))
	}()
	if err := s.awaitReady(ctx); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		err = fmt.Errorf("start a private server on port %d: %w: %s", port, err, bytes.TrimSpace(log))
		if bytes.Contains(log, []byte("could not create any TCP/IP sockets")) {
			err = errors.Join(errPortTaken, err)
		}
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func serverArgs(data string, port int, o Options) []string {
	settings := map[string]string{
		"listen_addresses": "127.0.0.1", "port": strconv.Itoa(port), "unix_socket_directories": "",
		"dynamic_shared_memory_type": "mmap", "shared_buffers": "64MB", "max_wal_size": "2GB", "wal_level": "minimal", "max_wal_senders": "0",
	}
	if !o.Durable {
		settings["fsync"], settings["synchronous_commit"], settings["full_page_writes"] = "off", "off", "off"
	}
	for name, value := range o.Settings {
		settings[name] = value
	}
	args := []string{"-D", data}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// awaitReady tries to connect until the server answers, has ended, or ctx ends.
func (s *Server) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.ended:
			return errors.New("the server ended")
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// DSN returns the URL of a database of this server for the superuser, password included.
func (s *Server) DSN(database string) string {
	return s.DSNFor(Superuser, s.Password, database)
}

// DSNFor returns the URL of a database of this server for any role. Names and passwords may hold any characters.
func (s *Server) DSNFor(user, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Path: "/" + database,
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)), RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends the server at once (an immediate shutdown), waits until all of its processes are gone and removes its
// directory. May be called twice.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		_ = s.lifeline.Close()
		s.end()
		<-s.ended
		_ = s.cmd.Wait() // the shell's status is that of a server shut down at once; what counts is that it is gone
		if err := os.RemoveAll(s.Dir); err != nil {
			s.stopErr = fmt.Errorf("remove the private server's directory: %w", err)
		}
	})
	return s.stopErr
}
