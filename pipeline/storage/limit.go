package storage

import (
	"context"
	"io"
	"sync"
	"time"
)

// limitChunk bounds, in bytes, what one Read passes before it waits, so that a slow rate is even.
const limitChunk = 64 << 10

// Limiter spreads bytes over time. One may be shared by any number of storages and streams: together they get its rate,
// served in the order in which they come. Safe for concurrent use.
type Limiter struct {
	rate int64 // bytes per second; below 1 = unlimited

	mu   sync.Mutex
	free time.Time // when the bytes granted so far have passed
}

// NewLimiter returns a limiter of bytesPerSecond; below 1 it limits nothing.
func NewLimiter(bytesPerSecond int64) *Limiter { return &Limiter{rate: bytesPerSecond} }

// Wait returns when n bytes have passed at the limiter's rate, counted from the end of what was granted before; the
// cause of ctx's end when that comes first (the n bytes stay counted). A nil Limiter never waits.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	if l == nil || l.rate < 1 || n <= 0 {
		return nil
	}
	return wait(ctx, l.grant(time.Now(), n))
}

// grant books n bytes at time now and returns how long they take to pass.
func (l *Limiter) grant(now time.Time, n int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.Before(now) {
		l.free = now
	}
	seconds, rest := int64(n)/l.rate, int64(n)%l.rate
	l.free = l.free.Add(time.Duration(seconds)*time.Second + time.Duration(float64(rest)/float64(l.rate)*float64(time.Second)))
	return l.free.Sub(now)
}

// chunk is how many bytes may pass at once: a tenth of a second's worth, at most limitChunk.
func (l *Limiter) chunk() int {
	if l == nil || l.rate < 1 {
		return limitChunk
	}
	return int(max(1, min(l.rate/10, limitChunk)))
}

// Limit wraps s so that the content of Puts passes at the rate of up and that of Gets at the rate of down; nil limits
// nothing. Stack it below Retry. A wait ends with ctx, and the Put or the Read then fails with its cause.
func Limit(s Storage, up, down *Limiter) Wrapper { return &limit{Storage: s, up: up, down: down} }

type limit struct {
	Storage
	up, down *Limiter
}

func (s *limit) Unwrap() Storage { return s.Storage }

func (s *limit) Put(ctx context.Context, name string, r io.Reader, c Condition) (Info, error) {
	if s.up != nil {
		r = &limitReader{ctx: ctx, l: s.up, r: r}
	}
	return s.Storage.Put(ctx, name, r, c)
}

func (s *limit) Get(ctx context.Context, name string) (io.ReadCloser, Info, error) {
	r, info, err := s.Storage.Get(ctx, name)
	if err != nil || s.down == nil {
		return r, info, err
	}
	return &limitReadCloser{limitReader{ctx: ctx, l: s.down, r: r}, r}, info, nil
}

// limitReader belongs to one call; its ctx is that call's.
type limitReader struct {
	ctx context.Context
	l   *Limiter
	r   io.Reader
}

func (r *limitReader) Read(p []byte) (int, error) {
	if n := r.l.chunk(); len(p) > n {
		p = p[:n]
	}
	n, err := r.r.Read(p)
	if waitErr := r.l.Wait(r.ctx, n); waitErr != nil {
		return n, waitErr
	}
	return n, err
}

type limitReadCloser struct {
	limitReader
	c io.Closer
}

func (r *limitReadCloser) Close() error { return r.c.Close() }
