package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// bridge makes a logger of the library's kind that writes to slog: what it calls an error or a warning becomes a warning,
// all else is for debugging.
func bridge(l *slog.Logger) *log.Logger {
	return log.New(&logWriter{log: l}, "", 0)
}

type logWriter struct{ log *slog.Logger }

func (w *logWriter) Write(line []byte) (int, error) {
	level, msg := parseLine(line)
	w.log.Log(context.Background(), level, msg)
	return len(line), nil
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
	return level, string(bytes.TrimPrefix(line, []byte("memberlist: ")))
}
