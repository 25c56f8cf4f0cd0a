package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// copyOf is one chosen storage over a whole attempt: it holds every part so far, or err says why not. While parts are
// written, err is guarded by the upload.
type copyOf struct {
	name  string
	store storage.Storage
	err   error
}

// upload streams the parts of one attempt into all chosen storages. Several parts may be streamed at the same time.
type upload struct {
	dir    string // of the attempt
	copies []*copyOf
	need   int // copies without which the attempt is lost
	chain  []processor.Processor
	stall  time.Duration
	rate   int64 // bytes per second from the source, for one part; 0 = no limit
	// hooks, called from the goroutine that calls part: before the first raw byte of a part, before its first byte goes to
	// a storage, with the raw bytes, with those that come out of the processors (may be nil), with the bytes that a storage
	// has read (from its own goroutine)
	onRaw    func() error
	onStore  func() error
	countRaw func(n int)
	countOut func(n int)
	watch    func(name string, size func() int64)

	mu   sync.Mutex
	made int // most blocks that any part had under way, for the test of the bound
}

// produce writes one part to w and returns nil only when the part is whole.
type produce func(ctx context.Context, w io.Writer) error

// part stores one part: all of it in at least need storages, or none of it anywhere. Every goroutine has ended when it
// returns; the error is the first one that happened. Failures of single storages are noted in copies.
func (u *upload) part(ctx context.Context, name string, from produce) (Object, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f, wait := u.open(ctx, cancel, name)
	stored := newMeter(f, nil, u.countOut)
	raw, err := u.run(ctx, cancel, f, stored, from)
	if err != nil {
		cancel(err) // the first reason stays: a producer that fails because its reader is gone does not hide why
		err = context.Cause(ctx)
	}
	for _, s := range f.sinks {
		s.finish(err)
	}
	wait(stored)
	if err != nil {
		return Object{}, fmt.Errorf("store part %s: %w", name, err)
	}
	if err := f.enough(); err != nil {
		return Object{}, fmt.Errorf("store part %s: %w", name, err)
	}
	return Object{Name: name, RawBytes: raw.n, RawSHA256: raw.hex(), StoredBytes: stored.n, StoredSHA256: stored.hex()}, nil
}

// run drives the producer through the processors into f.
func (u *upload) run(ctx context.Context, cancel context.CancelCauseFunc, f *fanout, stored *meter, from produce) (*meter, error) {
	w, err := processor.WrapAll(u.chain, stored)
	if err != nil {
		return nil, err
	}
	raw := newMeter(w, u.onRaw, u.countRaw)
	var first io.Writer = noting{w: raw, note: cancel}
	if u.rate > 0 {
		first = &limiter{ctx: ctx, w: first, rate: u.rate}
	}
	if err := from(ctx, first); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := f.flush(); err != nil {
		return nil, err
	}
	return raw, context.Cause(ctx)
}

// noting notes why a write failed, since a producer that is a process of its own only says that its reader is gone.
type noting struct {
	w    io.Writer
	note func(error)
}

func (n noting) Write(p []byte) (int, error) {
	m, err := n.w.Write(p)
	if err != nil {
		n.note(err)
	}
	return m, err
}

// open makes the fan-out to the copies that live. The Puts begin with the first block (after onStore), and wait
// returns when all have ended, having noted the failed ones.
func (u *upload) open(ctx context.Context, cancel context.CancelCauseFunc, name string) (*fanout, func(*meter)) {
	living := u.living()
	f := &fanout{ctx: ctx, pool: newPool(len(living)), need: u.need, stall: u.stall}
	var wg sync.WaitGroup
	for _, c := range living {
		sctx, scancel := context.WithCancelCause(ctx)
		s := &sink{name: c.name, pool: f.pool, ctx: sctx, began: time.Now(), cancel: scancel, blocks: make(chan *block, f.pool.max)}
		f.sinks = append(f.sinks, s)
		u.watch(c.name, s.size.Load)
	}
	f.begin = func() error {
		if err := u.onStore(); err != nil {
			return err
		}
		for i, c := range living {
			wg.Go(func() { u.put(f, f.sinks[i], c, u.dir+"/"+name, cancel) })
		}
		return nil
	}
	return f, func(stored *meter) {
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		f.drain(done)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.made = max(u.made, f.pool.made)
		for i, c := range living {
			s := f.sinks[i]
			s.cancel(nil)
			err := s.failure()
			if err == nil && s.size.Load() != stored.n && context.Cause(ctx) == nil {
				err = &storageError{name: c.name, err: fmt.Errorf("took %d of %d bytes", s.size.Load(), stored.n)}
				s.fail(err)
			}
			if c.err == nil { // the first reason stays, of whichever part
				c.err = err
			}
		}
	}
}

// put runs one storage's Put. When it fails and too few are left, the whole part ends.
func (u *upload) put(f *fanout, s *sink, c *copyOf, name string, cancel context.CancelCauseFunc) {
	info, err := c.store.Put(s.ctx, name, s, storage.Condition{})
	s.over.Store(true)
	if err == nil && info.Size != s.size.Load() {
		err = fmt.Errorf("stored %d of %d bytes", info.Size, s.size.Load())
	}
	if err != nil {
		if cause := context.Cause(s.ctx); cause != nil && errors.Is(cause, errStalled) {
			err = cause
		}
		var known *storageError
		if !errors.As(err, &known) {
			err = &storageError{name: c.name, err: err}
		}
		s.fail(err)
		if lost := f.enough(); lost != nil {
			cancel(lost)
		}
	}
	s.drop()
}

// living are the copies that hold every part so far.
func (u *upload) living() []*copyOf {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []*copyOf
	for _, c := range u.copies {
		if c.err == nil {
			out = append(out, c)
		}
	}
	return out
}

// enough fails, with the first reason, when too few copies hold every part: two parts that were streamed at the same time
// may each have lost another storage.
func (u *upload) enough() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	whole := 0
	var first error
	for _, c := range u.copies {
		if c.err == nil {
			whole++
		} else if first == nil {
			first = c.err
		}
	}
	if whole < u.need {
		return first
	}
	return nil
}
