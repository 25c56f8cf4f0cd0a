package storagetest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// Faulty is a storage with faults. It is a storage.Wrapper.
type Faulty struct {
	below  storage.Storage
	faults []*Fault
}

// Inject wraps s so that faults strike, in the order given when several are in force for one call.
func Inject(s storage.Storage, faults ...*Fault) *Faulty { return &Faulty{below: s, faults: faults} }

// Unwrap implements storage.Wrapper.
func (s *Faulty) Unwrap() storage.Storage { return s.below }

// String lists the faults, one a line, with how often each was in force.
func (s *Faulty) String() string {
	lines := make([]string, len(s.faults))
	for i, f := range s.faults {
		lines[i] = fmt.Sprintf("%v [%d hits]", f, f.Hits())
	}
	return strings.Join(lines, "\n")
}

// call is the faults that are in force for one call.
type call struct {
	ctx    context.Context
	name   string
	faults []*Fault
}

func (s *Faulty) begin(ctx context.Context, op Op, name string) (call, error) {
	c := call{ctx: ctx, name: name}
	for _, f := range s.faults {
		if f.matches(op, name) {
			c.faults = append(c.faults, f)
		}
	}
	return c, c.strike(atStart)
}

// strike lets the faults of a place strike until one answers an error.
func (c call) strike(at place) error {
	for _, f := range c.faults {
		if f.at == at {
			if err := f.strike(c.ctx, c.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// stream puts the stream faults into r.
func (c call) stream(r io.Reader) io.Reader {
	for _, f := range c.faults {
		if f.at == inStream {
			r = &faultyReader{call: c, f: f, r: r, left: f.after}
		}
	}
	return r
}

// faultyReader passes left bytes, then its fault strikes once.
type faultyReader struct {
	call   call
	f      *Fault
	r      io.Reader
	left   int64
	struck bool
	err    error
}

func (r *faultyReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.left == 0 && !r.struck {
		r.struck = true
		if r.f.cutIt {
			r.err = io.EOF
		} else {
			r.err = r.f.strike(r.call.ctx, r.call.name)
		}
		if r.err != nil {
			return 0, r.err
		}
	}
	if !r.struck && int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.r.Read(p)
	if !r.struck {
		r.left -= int64(n)
	}
	return n, err
}

// Put implements storage.Storage.
func (s *Faulty) Put(ctx context.Context, name string, r io.Reader, cond storage.Condition) (storage.Info, error) {
	c, err := s.begin(ctx, Put, name)
	if err != nil {
		return storage.Info{}, err
	}
	info, err := s.below.Put(ctx, name, c.stream(r), cond)
	if err == nil {
		err = c.strike(atEnd)
	}
	if err != nil {
		return storage.Info{}, err
	}
	return info, nil
}

// Get implements storage.Storage.
func (s *Faulty) Get(ctx context.Context, name string) (io.ReadCloser, storage.Info, error) {
	c, err := s.begin(ctx, Get, name)
	if err != nil {
		return nil, storage.Info{}, err
	}
	r, info, err := s.below.Get(ctx, name)
	if err != nil {
		return nil, storage.Info{}, err
	}
	if err := c.strike(atEnd); err != nil {
		_ = r.Close()
		return nil, storage.Info{}, err
	}
	return struct {
		io.Reader
		io.Closer
	}{c.stream(r), r}, info, nil
}

// Stat implements storage.Storage.
func (s *Faulty) Stat(ctx context.Context, name string) (storage.Info, error) {
	c, err := s.begin(ctx, Stat, name)
	if err != nil {
		return storage.Info{}, err
	}
	info, err := s.below.Stat(ctx, name)
	if err == nil {
		err = c.strike(atEnd)
	}
	if err != nil {
		return storage.Info{}, err
	}
	return info, nil
}

// List implements storage.Storage.
func (s *Faulty) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		c, err := s.begin(ctx, List, prefix)
		if err != nil {
			yield(storage.Info{}, err)
			return
		}
		for info, err := range s.below.List(ctx, prefix) {
			if !yield(info, err) || err != nil {
				return
			}
		}
		if err := c.strike(atEnd); err != nil {
			yield(storage.Info{}, err)
		}
	}
}

// Delete implements storage.Storage.
func (s *Faulty) Delete(ctx context.Context, name string) error {
	c, err := s.begin(ctx, Delete, name)
	if err != nil {
		return err
	}
	if err := s.below.Delete(ctx, name); err != nil {
		return err
	}
	return c.strike(atEnd)
}
