package admin

import (
	"context"
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

// Server serves a handler on a unix socket, from Start to Stop.
type Server struct {
	path   string
	http   *http.Server
	logger *slog.Logger
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	stopped bool
	done    chan struct{} // closed when the serving goroutine has ended; nil before Start
}

// NewServer makes a server for the socket at path. It opens nothing.
func NewServer(path string, h http.Handler, logger *slog.Logger) *Server {
	base, cancel := context.WithCancelCause(context.Background())
	return &Server{path: path, logger: logger, cancel: cancel, http: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}}
}

// Start opens the socket and serves it in a goroutine of its own. Called once; after Stop
// it is an error.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.done != nil {
		return errors.New("admin server was started or stopped before")
	}
	l, err := Listen(s.path)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	s.done = done
	go func() {
		defer close(done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("admin socket is not served any more", "socket", s.path, "error", err)
		}
	}()
	return nil
}

// Stop ends waiting requests, lets the others end until ctx ends, removes the socket and
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
