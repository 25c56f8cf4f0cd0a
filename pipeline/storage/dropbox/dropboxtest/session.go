package dropboxtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// session is an upload session.
type session struct {
	blob   string
	size   int64
	closed bool
	begun  time.Time
	hash   *contentHash
}

func (s *Server) expired(u *session) bool { return s.o.Now().Sub(u.begun) >= s.o.SessionLife }

// lookup is the session of a cursor; else the tags of why it cannot be gone on with. Under mu.
func (s *Server) lookup(c cursorArg) (*session, *apiErr) {
	u := s.sessions[c.SessionID]
	if u == nil || s.expired(u) {
		e := conflict("not_found")
		return nil, &e
	}
	if c.Offset != u.size {
		e := tagged(http.StatusConflict, "incorrect_offset", map[string]any{"correct_offset": u.size})
		return u, &e
	}
	return u, nil
}

// begin makes a session. Under mu.
func (s *Server) begin() (string, *session, error) {
	n := s.next()
	u := &session{blob: filepath.Join(s.o.Dir, fmt.Sprintf("blob-%d", n)), begun: s.o.Now(), hash: newContentHash()}
	if err := os.WriteFile(u.blob, nil, 0o600); err != nil {
		return "", nil, err
	}
	id := fmt.Sprintf("session-%d", n)
	s.sessions[id] = u
	return id, u, nil
}

// take appends to a session.
func (u *session) take(b []byte) error {
	f, err := os.OpenFile(u.blob, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		_ = f.Close()
		return err
	}
	u.size += int64(len(b))
	u.hash.write(b)
	return f.Close()
}

// contentHash is the hash of the API: that of the hashes of blocks of 4 MiB. It is written here once more, from the
// documentation, so that the emulator checks the client's.
type contentHash struct {
	all   hash.Hash
	block hash.Hash
	n     int
}

const hashBlock = 4 << 20

func newContentHash() *contentHash { return &contentHash{all: sha256.New(), block: sha256.New()} }

func (h *contentHash) write(p []byte) {
	for len(p) > 0 {
		part := p[:min(len(p), hashBlock-h.n)]
		h.block.Write(part)
		h.n += len(part)
		p = p[len(part):]
		if h.n == hashBlock {
			h.flush()
		}
	}
}

func (h *contentHash) flush() {
	h.all.Write(h.block.Sum(nil))
	h.block.Reset()
	h.n = 0
}

// sum ends the hash.
func (h *contentHash) sum() string {
	if h.n > 0 {
		h.flush()
	}
	return hex.EncodeToString(h.all.Sum(nil))
}

func hashOf(b []byte) string {
	h := newContentHash()
	h.write(b)
	return h.sum()
}
