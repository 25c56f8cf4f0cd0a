package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// toldWithin bounds the last write of a task's log: what cannot be written then stays in the node's own log.
const toldWithin = 5 * time.Second

// taskLog collects what there is to tell of one attempt, for the task's own log in the ledger.
type taskLog struct {
	cfg     *Config
	guard   ledger.Guard
	attempt int

	mu    sync.Mutex
	lines []ledger.LogLine // not written yet; at most ledger.MaxLines, the newest
}

func newTaskLog(cfg *Config, g ledger.Guard, attempt int) *taskLog {
	return &taskLog{cfg: cfg, guard: g, attempt: attempt}
}

// logger is the node's; what it says from the level info on is told of the task too.
func (l *taskLog) logger() *slog.Logger {
	node := l.cfg.Logger.With("task", l.guard.Item, "token", l.guard.Token)
	return slog.New(telling{node.Handler(), l})
}

// tell adds a line.
func (l *taskLog) tell(level, text string) {
	line := ledger.LogLine{
		At: l.cfg.Now().UTC(), Attempt: l.attempt, Token: l.guard.Token, Node: l.cfg.Gate.Self().Node, Level: level, Text: text,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.lines = l.lines[max(0, len(l.lines)-ledger.MaxLines):]
}

// write writes what there is; when the ledger is away it is kept for the next time. Called by one goroutine at a time.
func (l *taskLog) write(ctx context.Context) {
	l.mu.Lock()
	lines := l.lines
	l.lines = nil
	l.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	err := l.cfg.Ledger.AppendLog(ctx, l.guard, lines)
	if err == nil || !errors.Is(err, ledger.ErrUnavailable) && ctx.Err() == nil {
		return // or nobody may tell anything under this token any more
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(lines, l.lines...)
	l.lines = l.lines[max(0, len(l.lines)-ledger.MaxLines):]
}

// end writes the last lines, while the claim is held.
func (l *taskLog) end(held context.Context) {
	ctx, cancel := context.WithTimeout(held, toldWithin)
	defer cancel()
	l.write(ctx)
}

// telling is a handler that passes records on to the node's, and what matters to the task's log.
type telling struct {
	slog.Handler
	log *taskLog
}

// Enabled implements slog.Handler.
func (t telling) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t telling) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		t.log.tell(lineLevel(r.Level), lineText(r))
	}
	if !t.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler. Attributes of the logger itself are the node's concern.
func (t telling) WithAttrs(attrs []slog.Attr) slog.Handler {
	return telling{t.Handler.WithAttrs(attrs), t.log}
}

// WithGroup implements slog.Handler.
func (t telling) WithGroup(name string) slog.Handler {
	return telling{t.Handler.WithGroup(name), t.log}
}

func lineLevel(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return ledger.LineError
	case l >= slog.LevelWarn:
		return ledger.LineWarn
	}
	return ledger.LineInfo
}

// lineText is a record for people: the message, what it is about, and why.
func lineText(r slog.Record) string {
	var about, why strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		switch value := a.Value.Resolve().String(); {
		case a.Key == "task" || a.Key == "token" || value == "":
		case a.Key == "err" || a.Key == "reason" || a.Key == "why":
			why.WriteString(": " + value)
		default:
			about.WriteString(", " + a.Key + " " + value)
		}
		return true
	})
	return r.Message + about.String() + why.String()
}
