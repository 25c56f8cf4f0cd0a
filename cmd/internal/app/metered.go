package app

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/fencepost/fencepost/cmd/internal/metrics"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// metered counts the calls to a storage, what came of them, and the bytes.
type metered struct {
	storage.Storage
	name string
	m    *metrics.Metrics
}

func meter(s storage.Storage, name string, m *metrics.Metrics) storage.Wrapper {
	return &metered{Storage: s, name: name, m: m}
}

// Unwrap implements storage.Wrapper.
func (s *metered) Unwrap() storage.Storage { return s.Storage }

func (s *metered) called(call string, err error) { s.m.Called(s.name, call, resultOf(err)) }

// resultOf is the class of a call's error. What a caller asked to have ended is no failure of the storage.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, storage.ErrNotFound):
		return "missing"
	case errors.Is(err, storage.ErrExists):
		return "exists"
	case errors.Is(err, storage.ErrStale):
		return "stale"
	case errors.Is(err, storage.ErrPermanent):
		return "permanent"
	}
	return "passing"
}

func (s *metered) Put(ctx context.Context, name string, r io.Reader, c storage.Condition) (storage.Info, error) {
	info, err := s.Storage.Put(ctx, name, r, c)
	s.called("put", err)
	if err == nil {
		s.m.Put(s.name, info.Size)
	}
	return info, err
}

func (s *metered) Get(ctx context.Context, name string) (io.ReadCloser, storage.Info, error) {
	r, info, err := s.Storage.Get(ctx, name)
	s.called("get", err)
	if err != nil {
		return nil, info, err
	}
	return &meteredReader{ReadCloser: r, got: func(n int64) { s.m.Got(s.name, n) }}, info, nil
}

// meteredReader counts when it is closed, so that a read of a few bytes costs nothing.
type meteredReader struct {
	io.ReadCloser
	n   int64
	got func(int64)
}

func (r *meteredReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.n += int64(n)
	return n, err
}

func (r *meteredReader) Close() error {
	r.got(r.n)
	r.n = 0
	return r.ReadCloser.Close()
}

func (s *metered) Stat(ctx context.Context, name string) (storage.Info, error) {
	info, err := s.Storage.Stat(ctx, name)
	s.called("stat", err)
	return info, err
}

func (s *metered) Delete(ctx context.Context, name string) error {
	err := s.Storage.Delete(ctx, name)
	s.called("delete", err)
	return err
}

func (s *metered) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		var failed error
		for info, err := range s.Storage.List(ctx, prefix) {
			failed = err
			if !yield(info, err) {
				break
			}
		}
		s.called("list", failed)
	}
}
