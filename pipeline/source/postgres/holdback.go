package postgres

import (
	"bytes"
	"errors"
	"io"
)

// heldBack is how much of the end of a script is kept from psql until all is known to be good. pg_restore ends its
// script with COMMIT and a comment, far shorter than that.
const heldBack = 4 << 10

// holdBack passes on what is written to it, but for the last bytes.
type holdBack struct {
	w    io.Writer
	held []byte // at most heldBack
}

// Write passes on as much as it may.
func (h *holdBack) Write(p []byte) (int, error) {
	over := len(h.held) + len(p) - heldBack
	if over <= 0 {
		h.held = append(h.held, p...)
		return len(p), nil
	}
	old := min(over, len(h.held))
	if _, err := h.w.Write(h.held[:old]); err != nil {
		return 0, err
	}
	h.held = append(h.held[:0], h.held[old:]...)
	if _, err := h.w.Write(p[:over-old]); err != nil {
		return 0, err
	}
	h.held = append(h.held, p[over-old:]...)
	return len(p), nil
}

// beforeCommit returns what comes before the COMMIT that ends a script of pg_restore. Only comments and the end of
// psql's restricted mode may follow it. A COMMIT further up is part of the data, or else refused by the server.
func beforeCommit(held []byte) ([]byte, error) {
	const commit = "\nCOMMIT;\n"
	at := bytes.LastIndex(held, []byte(commit))
	if at < 0 {
		return nil, errors.New("the script of pg_restore does not end with a COMMIT")
	}
	for line := range bytes.Lines(held[at+len(commit):]) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("--")) && !bytes.HasPrefix(line, []byte(`\unrestrict `)) {
			return nil, errors.New("the script of pg_restore goes on after its COMMIT")
		}
	}
	return held[:at+1], nil
}

// restriction returns the key with which a script has psql refuse meta-commands that a backup may have been made to
// carry; nil when it does not. Every pg_restore since August 2025 says so in the first lines.
func restriction(head []byte) []byte {
	_, after, ok := bytes.Cut(head, []byte("\n\\restrict "))
	if !ok {
		return nil
	}
	key, _, _ := bytes.Cut(after, []byte("\n"))
	return bytes.TrimSpace(key)
}
