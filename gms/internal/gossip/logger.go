package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"strings"
)

// bridge makes a logger of the library's kind that writes to slog: what it calls an error or a warning becomes a warning,
// all else, and what every fast restart of a node brings, is for debugging.
func bridge(l *slog.Logger) *log.Logger {
	return log.New(&logWriter{log: l}, "", 0)
}

type logWriter struct{ log *slog.Logger }

func (w *logWriter) Write(line []byte) (int, error) {
	level, msg := parseLine(line)
	w.log.Log(context.Background(), level, msg)
	return len(line), nil
}

// routine tells of lines that come by the dozen until the library has given up a closed run whose node is back: the others
// ping the former run, and the new one says that it is another.
func routine(text string) bool {
	return strings.HasPrefix(text, "Got ping for unexpected node") || strings.HasPrefix(text, "Failed fallback TCP ping") ||
		strings.HasPrefix(text, "ignoring alive message for")
}

// parseLine splits "[WARN] memberlist: text" into its level and text.
func parseLine(line []byte) (slog.Level, string) {
	line = bytes.TrimSpace(line)
	level := slog.LevelDebug
	if bytes.HasPrefix(line, []byte("[")) {
		word, rest, ok := bytes.Cut(line[1:], []byte("] "))
		if ok {
			line = rest
			if s := string(word); s == "WARN" || s == "ERR" || s == "ERROR" {
				level = slog.LevelWarn
			}
		}
	}
	text := string(bytes.TrimPrefix(line, []byte("memberlist: ")))
	if routine(text) {
		level = slog.LevelDebug
	}
	return level, "gossip: " + text
}
