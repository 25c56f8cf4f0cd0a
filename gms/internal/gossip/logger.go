package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// bridge makes a logger of the library's kind that writes to slog: what it calls an error or a warning becomes a warning,
// all else, and what every fast restart of a node brings, is for debugging.
func bridge(l *slog.Logger, b *blocked) *log.Logger {
	return log.New(&logWriter{log: l, said: map[string]time.Time{}, blocked: b}, "", 0)
}

type logWriter struct {
	log     *slog.Logger
	blocked *blocked

	mu   sync.Mutex
	said map[string]time.Time // what was said of which stranger, and when
}

func (w *logWriter) Write(line []byte) (int, error) {
	level, msg := parseLine(line)
	if why := strangeness(msg); why != "" {
		w.stranger(why, sender(msg))
		return len(line), nil
	}
	if name := onlyByStream(msg); name != "" {
		w.blocked.note(name)
	}
	w.log.Log(context.Background(), level, msg)
	return len(line), nil
}

const (
	strangerEvery = time.Minute // between two lines about one host
	strangers     = 256         // hosts that are remembered
)

// stranger says once a minute why a host is not heard.
func (w *logWriter) stranger(why, host string) {
	w.mu.Lock()
	now, key := time.Now(), why+host
	at, known := w.said[key]
	fresh := !known || now.Sub(at) >= strangerEvery
	if fresh {
		if len(w.said) >= strangers {
			clear(w.said)
		}
		w.said[key] = now
	}
	w.mu.Unlock()
	if fresh {
		w.log.Warn("gossip: "+why, "from", host)
	}
}

// strangeness tells why somebody is not of this group, in words for people; empty for all else. The library has no other
// form for it than its text.
func strangeness(text string) string {
	switch {
	case strings.Contains(text, "no installed keys could decrypt"), strings.Contains(text, "remote state is not encrypted"),
		strings.Contains(text, "Decrypt packet failed"):
		return "what comes is not encrypted with a key of this node: all members of a group need the same gossip keys"
	case strings.Contains(text, "remote state is encrypted and encryption is not configured"):
		return "what comes is encrypted, and this node has no gossip key"
	case strings.Contains(text, "unacceptable label"):
		return "what comes is of another group"
	}
	return ""
}

// sender is the host in "... from=host:port".
func sender(text string) string {
	_, from, _ := strings.Cut(text, "from=")
	if host, _, err := net.SplitHostPort(from); err == nil {
		return host
	}
	return from
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
