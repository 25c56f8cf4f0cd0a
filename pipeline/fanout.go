package pipeline

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Memory of one fan-out: blocksPerSink blocks of blockSize for each storage, and blocksSpare more.
const (
	blockSize     = 256 << 10
	blocksPerSink = 4
	blocksSpare   = 2
)

// block is a piece of the stream that all storages read; the last reader gives it back.
type block struct {
	buf  []byte
	refs atomic.Int32
}

// pool hands out at most max blocks. Only the writing side takes, any side gives back.
type pool struct {
	free chan *block
	made int
	max  int
}

func newPool(sinks int) *pool {
	n := sinks*blocksPerSink + blocksSpare
	return &pool{free: make(chan *block, n), max: n}
}

func (p *pool) release(b *block) {
	if b.refs.Add(-1) == 0 {
		b.buf = b.buf[:0]
		p.free <- b // never blocks: there are no more blocks than places
	}
}

// tryTake returns a free block, or nil.
func (p *pool) tryTake() *block {
	select {
	case b := <-p.free:
		return b
	default:
	}
	if p.made == p.max {
		return nil
	}
	p.made++
	return &block{buf: make([]byte, 0, blockSize)}
}

// sink is one storage's end of the fan-out: an io.Reader for its Put. The writing side offers blocks and closes it.
type sink struct {
	name   string
	pool   *pool
	ctx    context.Context // bounds Read, which has no place for it; ends with the part
	began  time.Time
	cancel context.CancelCauseFunc
	blocks chan *block  // as many places as there are blocks: a send never blocks
	taken  atomic.Int64 // blocks read to their end
	moved  atomic.Int64 // when bytes, or the end, were read last; ns since the sink began
	whole  atomic.Bool  // the end was read
	over   atomic.Bool  // its Put has returned
	size   atomic.Int64 // bytes read

	cur *block // of the reading side
	off int

	mu    sync.Mutex
	dead  bool  // takes no more blocks
	ended bool  // blocks is closed
	end   error // io.EOF or why the stream is cut; set before blocks is closed
	err   error // why the storage holds no copy
}

// Read implements io.Reader for Storage.Put. It ends with io.EOF only after the writing side completed the stream.
func (s *sink) Read(p []byte) (int, error) {
	for s.cur == nil {
		select {
		case b, ok := <-s.blocks:
			if !ok {
				s.whole.Store(s.end == io.EOF)
				s.move()
				return 0, s.end
			}
			s.cur, s.off = b, 0
		case <-s.ctx.Done():
			return 0, context.Cause(s.ctx)
		}
	}
	s.move()
	n := copy(p, s.cur.buf[s.off:])
	s.off += n
	s.size.Add(int64(n))
	if s.off == len(s.cur.buf) {
		s.drop()
		s.taken.Add(1)
	}
	return n, nil
}

func (s *sink) move() { s.moved.Store(int64(time.Since(s.began))) }

// idle is for how long nothing was read.
func (s *sink) idle() time.Duration { return time.Since(s.began) - time.Duration(s.moved.Load()) }

// drop gives back the block that is being read. Called by the reading side, or after it has ended.
func (s *sink) drop() {
	if s.cur != nil {
		s.pool.release(s.cur)
		s.cur = nil
	}
}

// offer hands b over; false when the sink is dead.
func (s *sink) offer(b *block) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return false
	}
	s.blocks <- b
	return true
}

// fail ends the sink: it takes no more blocks, gives back those that wait, and its Put is cancelled. The first reason
// stays.
func (s *sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dead {
		s.dead, s.err = true, err
	}
	s.cancel(err)
	for {
		select {
		case b, ok := <-s.blocks:
			if !ok {
				return
			}
			s.pool.release(b)
		default:
			return
		}
	}
}

// finish ends the stream: whole when err is nil, else cut.
func (s *sink) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.end = true, err
	if err == nil {
		s.end = io.EOF
	}
	close(s.blocks)
}

func (s *sink) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fanout is a writer whose bytes go to several sinks at once. The slowest sets the pace, since the number of blocks is
// fixed; one that takes nothing for stall while the writer waits is failed (laggard.go). Write fails when fewer than need
// sinks live.
type fanout struct {
	ctx   context.Context // of the part; bounds Write, which has no place for it
	pool  *pool
	sinks []*sink
	need  int
	stall time.Duration
	begin func() error // called once, before the first block is handed over
	cur   *block
}

// Write implements io.Writer; it blocks while all blocks are under way, and fails when the part's context ends.
func (f *fanout) Write(p []byte) (int, error) {
	total := 0
	for len(p) > 0 {
		if f.cur == nil {
			b, err := f.take()
			if err != nil {
				return total, err
			}
			f.cur = b
		}
		n := min(len(p), blockSize-len(f.cur.buf))
		f.cur.buf = append(f.cur.buf, p[:n]...)
		p, total = p[n:], total+n
		if len(f.cur.buf) == blockSize {
			if err := f.flush(); err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

// flush hands the present block over, full or not.
func (f *fanout) flush() error {
	if f.begin != nil {
		if err := f.begin(); err != nil {
			return err
		}
		f.begin = nil
	}
	if err := f.enough(); err != nil || f.cur == nil {
		return err
	}
	b := f.cur
	f.cur = nil
	b.refs.Store(int32(len(f.sinks)) + 1)
	for _, s := range f.sinks {
		if !s.offer(b) {
			f.pool.release(b)
		}
	}
	f.pool.release(b)
	return nil
}

// enough fails, with the first sink's reason, when too few sinks live.
func (f *fanout) enough() error {
	living := 0
	var first error
	for _, s := range f.sinks {
		if err := s.failure(); err == nil {
			living++
		} else if first == nil {
			first = err
		}
	}
	if living < f.need {
		return first
	}
	return nil
}

// take waits for a free block; each time that none comes back for stall, the sinks that lag most are failed, if they may.
func (f *fanout) take() (*block, error) {
	if b := f.pool.tryTake(); b != nil {
		return b, nil
	}
	timer := time.NewTimer(f.stall)
	defer timer.Stop()
	for waits := 1; ; {
		select {
		case b := <-f.pool.free:
			return b, nil
		case <-timer.C:
			f.failLaggards(waits)
			waits++
			timer.Reset(f.stall)
		case <-f.ctx.Done():
			return nil, context.Cause(f.ctx)
		}
	}
}
