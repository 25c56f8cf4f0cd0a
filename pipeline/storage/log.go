package storage

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"time"
)

// Log wraps s so that every call leaves one line at level debug: what, which object, bytes, how long, error. Errors go
// to the caller as they are; whether one matters is the caller's to say. name is the storage's configured name.
func Log(s Storage, name string, logger *slog.Logger) Wrapper {
	return &logged{Storage: s, log: logger.With("storage", name)}
}

type logged struct {
	Storage
	log *slog.Logger
}

func (s *logged) Unwrap() Storage { return s.Storage }

// done writes the line of a call that began at start.
func (s *logged) done(ctx context.Context, op, name string, start time.Time, size int64, err error) {
	attrs := []slog.Attr{slog.String("object", name), slog.Duration("took", time.Since(start))}
	if size >= 0 {
		attrs = append(attrs, slog.Int64("bytes", size))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "storage: "+op, attrs...)
}

func (s *logged) Put(ctx context.Context, name string, r io.Reader, c Condition) (Info, error) {
	start := time.Now()
	info, err := s.Storage.Put(ctx, name, r, c)
	s.done(ctx, "put", name, start, info.Size, err)
	return info, err
}

// Get's line is written when the reader is closed, so that it tells what was read.
func (s *logged) Get(ctx context.Context, name string) (io.ReadCloser, Info, error) {
	start := time.Now()
	r, info, err := s.Storage.Get(ctx, name)
	if err != nil {
		s.done(ctx, "get", name, start, 0, err)
		return nil, info, err
	}
	end := func(n int64, err error) { s.done(ctx, "get", name, start, n, err) }
	return &logReader{r: r, end: end}, info, nil
}

type logReader struct {
	r      io.ReadCloser
	n      int64
	err    error // first error of Read but io.EOF
	closed bool
	end    func(n int64, err error)
}

func (r *logReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.n += int64(n)
	if err != nil && err != io.EOF && r.err == nil {
		r.err = err
	}
	return n, err
}

func (r *logReader) Close() error {
	err := r.r.Close()
	if !r.closed {
		r.closed = true
		r.end(r.n, r.err)
	}
	return err
}

func (s *logged) Stat(ctx context.Context, name string) (Info, error) {
	start := time.Now()
	info, err := s.Storage.Stat(ctx, name)
	s.done(ctx, "stat", name, start, -1, err)
	return info, err
}

func (s *logged) Delete(ctx context.Context, name string) error {
	start := time.Now()
	err := s.Storage.Delete(ctx, name)
	s.done(ctx, "delete", name, start, -1, err)
	return err
}

func (s *logged) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		start := time.Now()
		var failed error
		for info, err := range s.Storage.List(ctx, prefix) {
			failed = err
			if !yield(info, err) {
				break
			}
		}
		s.done(ctx, "list", prefix, start, -1, failed)
	}
}
