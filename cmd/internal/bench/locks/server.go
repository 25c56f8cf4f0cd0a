package locks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync/atomic"

	"github.com/fencepost/fencepost/cmd/internal/bench"
)

// kindEnv and configEnv make this program a server when they are set.
const (
	kindEnv   = "FENCEPOST_BENCH_SERVER"
	configEnv = "FENCEPOST_BENCH_CONFIG"
)

// Kind is a server that this program can be: it serves until ctx ends, and calls ready once clients may come.
type Kind func(ctx context.Context, config []byte, ready func()) error

// Main is the main of a program that is its own servers: served is false when this process is none of them. A server ends
// with its standard input, and so with whoever started it.
func Main(kinds map[string]Kind) (code int, served bool) {
	name := os.Getenv(kindEnv)
	if name == "" {
		return 0, false
	}
	kind, known := kinds[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: %q is no kind of server\n", kindEnv, name)
		return 2, true
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	serve := func() error {
		return kind(ctx, []byte(os.Getenv(configEnv)), func() { fmt.Println("ready") })
	}
	if err := profiled(name, serve); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1, true
	}
	return 0, true
}

// profiled serves, and writes a profile of its processor time when a folder for such is given.
func profiled(name string, serve func() error) (err error) {
	dir := os.Getenv(bench.ServerProfiles)
	if dir == "" {
		return serve()
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.cpu", name, os.Getpid())))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return serve()
}

// Server is a process that serves until it is stopped.
type Server struct {
	cmd   *exec.Cmd
	input io.Closer
	lines *bufio.Scanner
}

// Spawn starts this program again as a server. Its errors go where this one's go.
func Spawn(kind string, config any) (*Server, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode what a server of kind %s is told: %w", kind, err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a server of kind %s: %w", kind, err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), kindEnv+"="+kind, configEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a server of kind %s: %w", kind, err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a server of kind %s: %w", kind, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server of kind %s: %w", kind, err)
	}
	return &Server{cmd: cmd, input: input, lines: bufio.NewScanner(output)}, nil
}

// AwaitReady blocks until the server is ready, or has ended.
func (s *Server) AwaitReady() error {
	for s.lines.Scan() {
		if s.lines.Text() == "ready" {
			return nil
		}
	}
	return errors.New("a server has ended before it was ready")
}

// Stop asks the server to end, and waits for it. What it prints meanwhile is read, lest it waits for a reader.
func (s *Server) Stop() error {
	closed := s.input.Close()
	for s.lines.Scan() { // until its end
	}
	return errors.Join(closed, s.cmd.Wait())
}

// SpawnAll starts a server for each config, waits until all are ready, and says how they are stopped.
func SpawnAll[C any](kind string, configs []C) (stop func() error, err error) {
	var all []*Server
	stop = func() (err error) {
		for _, s := range all {
			err = errors.Join(err, s.Stop())
		}
		return err
	}
	for _, c := range configs {
		s, err := Spawn(kind, c)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		all = append(all, s)
	}
	for _, s := range all {
		if err := s.AwaitReady(); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	return stop, nil
}

var lastPort atomic.Int64

// FreeAddress is host:port on loopback where nobody listens, below the ports that the system gives to those who dial.
func FreeAddress() (string, error) {
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+(os.Getpid()*997+int(lastPort.Add(1)))%20000)
		if isFree(address) {
			return address, nil
		}
	}
	return "", errors.New("no free port on loopback")
}

func isFree(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	u, err := net.ListenPacket("udp", address)
	if err == nil {
		err = u.Close()
	}
	return errors.Join(err, l.Close()) == nil
}

// FreeAddresses is FreeAddress n times.
func FreeAddresses(n int) (list []string, err error) {
	for range n {
		a, err := FreeAddress()
		if err != nil {
			return nil, fmt.Errorf("%w (found %s)", err, strings.Join(list, ", "))
		}
		list = append(list, a)
	}
	return list, nil
}
