package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"time"
)

// meter is a writer that counts and hashes what goes through it. first is called once, before the first byte.
type meter struct {
	w     io.Writer
	first func() error
	count func(n int)
	sum   hash.Hash
	n     int64
}

func newMeter(w io.Writer, first func() error, count func(int)) *meter {
	return &meter{w: w, first: first, count: count, sum: sha256.New()}
}

func (m *meter) Write(p []byte) (int, error) {
	if m.first != nil && len(p) > 0 {
		if err := m.first(); err != nil {
			return 0, err
		}
		m.first = nil
	}
	n, err := m.w.Write(p)
	m.sum.Write(p[:n])
	m.n += int64(n)
	if m.count != nil {
		m.count(n)
	}
	return n, err
}

func (m *meter) hex() string { return hex.EncodeToString(m.sum.Sum(nil)) }

// checked is a reader that compares length and hash of what it passes on. The end of input is passed on only when both
// fit: a stream that is cut, longer or changed ends with an error instead. first and count are as in meter.
type checked struct {
	r     io.Reader
	what  string
	bytes int64
	hash  string
	first func() error
	count func(n int)
	sum   hash.Hash
	n     int64
	err   error // once set, the answer to every call; io.EOF when all was well
}

func newChecked(r io.Reader, what string, bytes int64, hash string, first func() error, count func(int)) *checked {
	return &checked{r: r, what: what, bytes: bytes, hash: hash, first: first, count: count, sum: sha256.New()}
}

func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	if n > 0 && c.first != nil {
		if c.err = c.first(); c.err != nil {
			return 0, c.err
		}
		c.first = nil
	}
	c.sum.Write(p[:n])
	c.n += int64(n)
	if c.count != nil {
		c.count(n)
	}
	switch {
	case c.n > c.bytes:
		c.err = fmt.Errorf("%s: %w: more than the %d bytes of the manifest", c.what, errCorrupt, c.bytes)
	case err == io.EOF:
		c.err = c.end()
	case err != nil:
		c.err = fmt.Errorf("read %s: %w", c.what, err)
	}
	if c.err != nil && c.err != io.EOF {
		return 0, c.err // bytes of a stream that does not fit are not passed on when it is known
	}
	return n, c.err
}

func (c *checked) end() error {
	if c.n != c.bytes {
		return fmt.Errorf("%s: %w: %d bytes, the manifest has %d", c.what, errCorrupt, c.n, c.bytes)
	}
	if got := hex.EncodeToString(c.sum.Sum(nil)); got != c.hash {
		return fmt.Errorf("%s: %w: its SHA-256 is not that of the manifest", c.what, errCorrupt)
	}
	return io.EOF
}

// finish reads what is left and tells whether the whole stream fitted.
func (c *checked) finish() error {
	if _, err := io.Copy(io.Discard, c); err != nil {
		return err
	}
	return nil
}

// limiter slows a writer down to a number of bytes per second, measured from its first byte.
type limiter struct {
	ctx   context.Context // bounds Write, which has no place for it
	w     io.Writer
	rate  int64
	start time.Time
	n     int64
}

func (l *limiter) Write(p []byte) (int, error) {
	if l.start.IsZero() {
		l.start = time.Now()
	}
	n, err := l.w.Write(p)
	l.n += int64(n)
	if err != nil {
		return n, err
	}
	due := l.start.Add(time.Duration(float64(l.n) / float64(l.rate) * float64(time.Second)))
	wait := time.NewTimer(time.Until(due))
	defer wait.Stop()
	select {
	case <-wait.C:
		return n, nil
	case <-l.ctx.Done():
		return n, context.Cause(l.ctx)
	}
}
