package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// ErrSocketInUse: a daemon answers at the socket already.
var ErrSocketInUse = errors.New("another daemon answers at this socket")

// Listen opens the unix socket at path with mode 0600; its folder is made (0700) when it
// is missing. What a dead daemon left there is removed, what a living one uses is not:
// ErrSocketInUse.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the admin socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("admin socket %s: %w", path, ErrSocketInUse) // it came between
	}
	if err != nil {
		return nil, fmt.Errorf("open the admin socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the admin socket: %w", err), l.Close())
	}
	return l, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the admin socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("admin socket %s: there is something that is no socket: move it away or choose another path", path)
	}
	conn, err := net.DialTimeout("unix", path, 2*time.Second)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was said
		return fmt.Errorf("admin socket %s: %w", path, ErrSocketInUse)
	case errors.Is(err, syscall.ECONNREFUSED):
		return removeSame(path, info)
	default:
		return fmt.Errorf("admin socket %s: cannot tell whether a daemon uses it: %w", path, err)
	}
}

// removeSame removes what is at path if it is still what was looked at: another daemon
// that starts now may have been faster.
func removeSame(path string, seen fs.FileInfo) error {
	info, err := os.Lstat(path)
	if err == nil && !os.SameFile(info, seen) {
		return fmt.Errorf("admin socket %s: %w", path, ErrSocketInUse)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the admin socket of a dead daemon: %w", err)
	}
	return nil
}

// errStopping is what requests that wait are told when the server stops.
var errStopping = &api.Error{Code: api.CodeUnavailable, Message: "the daemon is stopping", Hint: "ask another node, or again when it is back"}

// Server serves a handler, from Start to Stop.
type Server struct {
	name   string // of where it listens, for the log
	listen func() (net.Listener, error)
	http   *http.Server
	logger *slog.Logger
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	stopped bool
	address string
	done    chan struct{} // closed when the serving goroutine has ended; nil before Start
}

// maxHeader bounds a request's line and header, in bytes.
const maxHeader = 32 << 10

// NewServer makes a server for the socket at path. It opens nothing. Who can open the socket may do everything.
func NewServer(path string, h http.Handler, logger *slog.Logger) *Server {
	s := newServer("socket "+path, func() (net.Listener, error) { return Listen(path) }, h, logger)
	s.http.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return accounts.With(ctx, accounts.Actor{Name: "local:" + peer(c), Role: api.RoleAdmin, Via: accounts.ViaSocket})
	}
	return s
}

// NewNetServer makes a server for a TCP address; secure is nil for one without TLS. It opens nothing. h is a Front: it has
// to find out who asks.
func NewNetServer(bind string, secure *tls.Config, h http.Handler, logger *slog.Logger) *Server {
	return newServer("address "+bind, func() (net.Listener, error) {
		l, err := net.Listen("tcp", bind)
		if err != nil {
			return nil, fmt.Errorf("open the admin port: %w", err)
		}
		if secure != nil {
			l = tls.NewListener(l, secure)
		}
		return l, nil
	}, h, logger)
}

func newServer(name string, listen func() (net.Listener, error), h http.Handler, logger *slog.Logger) *Server {
	base, cancel := context.WithCancelCause(context.Background())
	return &Server{name: name, listen: listen, logger: logger, cancel: cancel, http: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // what strangers do to a port is no news
	}}
}

// Start listens and serves in a goroutine of its own. Called once; after Stop
// it is an error.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.done != nil {
		return errors.New("admin server was started or stopped before")
	}
	l, err := s.listen()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	s.done, s.address = done, l.Addr().String()
	go func() {
		defer close(done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("admin: requests are not served any more", "at", s.name, "error", err)
		}
	}()
	return nil
}

// Address is where it listens; empty before Start.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// Stop ends waiting requests, lets the others end until ctx ends, removes a socket and
// waits for the serving goroutine.
func (s *Server) Stop(ctx context.Context) {
	s.mu.Lock()
	s.stopped = true
	done := s.done
	s.mu.Unlock()
	s.cancel(errStopping)
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // what did not end in time is cut off
	}
	if done != nil {
		<-done
	}
}
