package gmstest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// LogEnv names the environment variable that has the nodes' whole log printed while a test runs, when it is not empty.
const LogEnv = "FENCEPOST_TEST_LOG"

// tape keeps the last lines of all nodes' logs, with virtual times, to be shown when the test has failed.
type tape struct {
	began time.Time
	loud  bool

	mu    sync.Mutex
	lines []string
}

const tapeLines = 2000

func newTape() *tape { return &tape{began: time.Now(), loud: os.Getenv(LogEnv) != ""} }

// logger is a node's log.
func (t *tape) logger(n *Node) *slog.Logger { return slog.New(&tapeHandler{tape: t, node: n}) }

// note adds a line.
func (t *tape) note(node, text string) {
	line := fmt.Sprintf("%12v %-4s %s", time.Since(t.began).Round(time.Microsecond), node, text)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loud {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(t.lines) >= 2*tapeLines {
		t.lines = append(t.lines[:0], t.lines[len(t.lines)-tapeLines:]...)
	}
	t.lines = append(t.lines, line)
}

// String is the tail of the tape.
func (t *tape) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines[max(0, len(t.lines)-tapeLines):], "\n")
}

type tapeHandler struct {
	tape  *tape
	node  *Node
	attrs []slog.Attr
}

// Enabled takes what operators would see, and all of it when somebody looks.
func (h *tapeHandler) Enabled(_ context.Context, l slog.Level) bool {
	return (l >= slog.LevelInfo || h.tape.loud) && h.node.lifeNow() != killed
}

// Handle writes one line.
func (h *tapeHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-5s %s", r.Level, r.Message)
	for _, a := range h.attrs {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
	}
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.tape.note(h.node.Name, b.String())
	return nil
}

// WithAttrs adds to every line.
func (h *tapeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tapeHandler{tape: h.tape, node: h.node, attrs: append(append([]slog.Attr(nil), h.attrs...), attrs...)}
}

// WithGroup is not used by the packages that log here; the group's name is left out.
func (h *tapeHandler) WithGroup(string) slog.Handler { return h }
