package consensus

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// logger hands Raft's messages to slog, one step more sober: what Raft calls an error is a warning here, its warnings (an
// election) are information, and the rest is for debugging; so is what every peer that is away brings again and again.
type logger struct {
	slog *slog.Logger
	name string
	args []any
}

var _ hclog.Logger = (*logger)(nil)

func level(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelWarn
	case hclog.Warn:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// away are messages about a peer that does not answer, or has hung up; the group's own log says so once.
var away = []string{
	"failed to heartbeat to", "failed to appendEntries to", "failed to make requestVote RPC", "failed to make preVote RPC",
	"failed to pipeline appendEntries to", "failed to install snapshot", "failed to contact", "failed to decode incoming command",
	"Election timeout reached", "failed to send snapshot to",
}

func sober(lv hclog.Level, msg string) slog.Level {
	if slices.ContainsFunc(away, func(prefix string) bool { return strings.HasPrefix(msg, prefix) }) {
		return slog.LevelDebug
	}
	return level(lv)
}

func (l *logger) Log(lv hclog.Level, msg string, args ...any) {
	ctx := context.Background()
	to := sober(lv, msg)
	if !l.slog.Enabled(ctx, to) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			if s, ok := f[0].(string); ok {
				args[i] = fmt.Sprintf(s, f[1:]...)
			}
		}
	}
	l.slog.Log(ctx, to, "raft: "+msg, args...)
}

func (l *logger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *logger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *logger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) enabled(lv hclog.Level) bool {
	return l.slog.Enabled(context.Background(), level(lv))
}

func (l *logger) IsTrace() bool { return l.enabled(hclog.Trace) }
func (l *logger) IsDebug() bool { return l.enabled(hclog.Debug) }
func (l *logger) IsInfo() bool  { return l.enabled(hclog.Info) }
func (l *logger) IsWarn() bool  { return l.enabled(hclog.Warn) }
func (l *logger) IsError() bool { return l.enabled(hclog.Error) }

func (l *logger) ImpliedArgs() []any { return l.args }
func (l *logger) Name() string       { return l.name }

func (l *logger) With(args ...any) hclog.Logger {
	all := append(append([]any(nil), l.args...), args...)
	return &logger{slog: l.slog.With(args...), name: l.name, args: all}
}

func (l *logger) Named(name string) hclog.Logger {
	if l.name != "" {
		name = l.name + "." + name
	}
	return l.ResetNamed(name)
}

func (l *logger) ResetNamed(name string) hclog.Logger {
	return &logger{slog: l.slog, name: name, args: l.args}
}

// SetLevel does nothing: the level is the slog handler's.
func (l *logger) SetLevel(hclog.Level) {}

func (l *logger) GetLevel() hclog.Level {
	if l.IsDebug() {
		return hclog.Debug
	}
	return hclog.Info
}

func (l *logger) StandardLogger(opts *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(opts), "", 0)
}

func (l *logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer {
	return writer{l}
}

type writer struct{ l *logger }

func (w writer) Write(p []byte) (int, error) {
	w.l.Debug(string(p))
	return len(p), nil
}
