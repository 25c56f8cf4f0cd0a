package storage

import (
	"bytes"
	"io"
)

// A Wrapper is a Storage on top of another. All wrappers of this package are, and those of tests should be.
type Wrapper interface {
	Storage
	// Unwrap returns the storage below.
	Unwrap() Storage
}

// As finds in a stack of wrappers the first storage that is a T: an implementation, or an optional ability.
func As[T any](s Storage) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		w, ok := s.(Wrapper)
		if !ok {
			break
		}
		s = w.Unwrap()
	}
	var none T
	return none, false
}

// A Rewinder is a reader that can begin anew. A Put whose reader is one can be repeated after bytes were read.
type Rewinder interface {
	io.Reader
	// Rewind makes the next Read yield the first byte again. Called between reads, by the goroutine that reads.
	Rewind() error
}

// Bytes returns a Rewinder over b, for small objects (a manifest) whose Put shall be repeatable. b must not be changed.
func Bytes(b []byte) Rewinder { return &rewindBytes{Reader: *bytes.NewReader(b)} }

type rewindBytes struct{ bytes.Reader }

func (r *rewindBytes) Rewind() error {
	_, err := r.Seek(0, io.SeekStart)
	return err
}
