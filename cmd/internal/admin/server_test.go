package admin

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestListenModes: nobody but the owner gets at the socket.
func TestListenModes(t *testing.T) {
	socket := filepath.Join(filepath.Dir(shortSocket(t)), "new", "a.sock")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]fs.FileMode{socket: 0o600, filepath.Dir(socket): 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
}

// TestListenOverALivingOne leaves it in peace.
func TestListenOverALivingOne(t *testing.T) {
	_, c, socket := serve(t, newFake().backend())
	if _, err := Listen(socket); !errors.Is(err, ErrSocketInUse) {
		t.Fatalf("error %v, want ErrSocketInUse", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatalf("the living one was disturbed: %v", err)
	}
}

// TestListenOverADeadOne takes its place.
func TestListenOverADeadOne(t *testing.T) {
	socket := shortSocket(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(socket); err != nil {
		t.Fatal("the file of the dead one is not there: the test tests nothing")
	}
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestListenOverAFile changes no byte of it.
func TestListenOverAFile(t *testing.T) {
	socket := shortSocket(t)
	if err := os.WriteFile(socket, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(socket); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Fatalf("error %v", err)
	}
	if text, err := os.ReadFile(socket); err != nil || string(text) != "mine" {
		t.Fatalf("the file holds %q (%v)", text, err)
	}
}

// TestLifetime: Stop may come first, may come twice, and removes the socket.
func TestLifetime(t *testing.T) {
	socket := shortSocket(t)
	logger := slog.New(slog.DiscardHandler)
	never := NewServer(socket, NewHandler(newFake().backend()), logger)
	stop(t, never)
	if err := never.Start(); err == nil {
		t.Fatal("started after Stop")
	}
	s := NewServer(socket, NewHandler(newFake().backend()), logger)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil {
		t.Fatal("started twice")
	}
	stop(t, s)
	stop(t, s)
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the socket is still there: %v", err)
	}
}

// TestStartFails says why, and leaves a server that can be stopped.
func TestStartFails(t *testing.T) {
	_, _, socket := serve(t, newFake().backend())
	s := NewServer(socket, NewHandler(newFake().backend()), slog.New(slog.DiscardHandler))
	if err := s.Start(); !errors.Is(err, ErrSocketInUse) {
		t.Fatalf("error %v, want ErrSocketInUse", err)
	}
	stop(t, s)
}

// TestStopEndsWaiting: a long poll does not hold the daemon up, and is told why it ends.
func TestStopEndsWaiting(t *testing.T) {
	f := newFake()
	f.set(api.Task{ID: "t1", State: "planned"})
	s, c, _ := serve(t, f.backend())
	result := make(chan error, 1)
	go func() {
		_, err := c.WaitTask(context.Background(), "t1", nil)
		result <- err
	}()
	<-f.watching
	stop(t, s)
	err := <-result
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.CodeUnavailable || e.Message != errStopping.Message {
		t.Fatalf("error %v, want that the daemon is stopping", err)
	}
}

// TestClientWithoutDaemon: one sentence with the path, and a hint.
func TestClientWithoutDaemon(t *testing.T) {
	socket := shortSocket(t)
	c := api.NewClient(socket)
	defer c.Close()
	_, err := c.Status(t.Context())
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.CodeUnavailable || !strings.Contains(e.Message, socket) || !strings.Contains(e.Hint, "fencepostd") {
		t.Fatalf("error %#v", err)
	}
}
