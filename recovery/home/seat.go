package home

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Seat is this process's place inside one generation. All methods may be called from any goroutine.
type Seat struct {
	op     opening
	number int
	lock   *lockFile
	record Record
	failed chan struct{} // closed when the generation has failed

	mu   sync.RWMutex // held while the page is used
	left bool

	closing  chan struct{}
	watching sync.WaitGroup
	failOnce sync.Mutex // one cause at a time goes through the seat's slot
}

const watchFor = 100 * time.Millisecond

func newSeat(op opening, lock *lockFile, number int, rec Record) *Seat {
	s := &Seat{op: op, number: number, lock: lock, record: rec, failed: make(chan struct{}), closing: make(chan struct{})}
	s.watching.Go(s.watch)
	return s
}

// watch ends when the generation fails or the seat is left.
func (s *Seat) watch() {
	for {
		if _, failed := s.op.page.cause(); failed {
			close(s.failed)
			return
		}
		select {
		case <-s.closing:
			return
		default:
			s.op.page.wait(watchFor)
		}
	}
}

// Failed is closed as soon as the generation has failed; every wait of the process selects on it.
func (s *Seat) Failed() <-chan struct{} { return s.failed }

// Check is nil while the generation is good, ErrRunRecovery with the first cause when it has failed, ErrLeft after Close. It
// costs one load from memory: call it before each act on what is shared.
func (s *Seat) Check() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.left {
		return ErrLeft
	}
	return s.op.check()
}

func (op opening) check() error {
	if cause, failed := op.page.cause(); failed {
		return &RunRecoveryError{op.seal.Generation, cause}
	}
	return nil
}

// Context is ctx, canceled with ErrRunRecovery as its cause when the generation fails. Call stop when it is not needed.
func (s *Seat) Context(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with ctx, which stop or the failure ends
		select {
		case <-s.failed:
			err := s.Check()
			if err == nil || errors.Is(err, ErrLeft) {
				err = ErrRunRecovery
			}
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Fail marks the generation failed for everybody inside. The first cause of all wins, and is what the error says that Fail
// returns: always ErrRunRecovery, unless the seat was left. A cause is one line of at most 500 bytes.
func (s *Seat) Fail(cause string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.left {
		return ErrLeft
	}
	s.failOnce.Lock()
	defer s.failOnce.Unlock()
	return s.op.failed(ownSlot(seatSlot+s.number), cause)
}

// Beat says that the process makes progress. A keeper that watches beats takes a seat for hung whose beats stop; one that
// never beat is not watched. It costs one atomic add.
func (s *Seat) Beat() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.left {
		s.op.page.beat(seatSlot + s.number)
	}
}

// Failchk looks whether anybody died inside, as the function of the same name does for the keeper, and whether the own lock
// is still what it was. ErrRunRecovery when the generation has failed, ErrLeft after Close.
func (s *Seat) Failchk() ([]Finding, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.left {
		return nil, ErrLeft
	}
	if err := s.lock.intact(); err != nil {
		s.failOnce.Lock()
		defer s.failOnce.Unlock()
		return nil, s.op.failed(ownSlot(seatSlot+s.number), err.Error())
	}
	return s.op.failchk(s.number)
}

// Generation is the one that the seat is in.
func (s *Seat) Generation() uint64 { return s.op.seal.Generation }

// Number is the seat's, counted from 0.
func (s *Seat) Number() int { return s.number }

// Volatile is a directory that everybody in this generation shares and that is gone in the next.
func (s *Seat) Volatile() string { return s.op.l.volatile(s.Generation()) }

// Close leaves: the caller has closed all that it had open inside. It waits for the seat's own goroutine. After a failure it
// is called like always. Calling it again does nothing.
func (s *Seat) Close() error { return s.Leave("") }

// Leave is Close with a parting word of at most 200 bytes for the keeper, such as why a node stops. A second call does nothing; errors are those of the files.
func (s *Seat) Leave(word string) error {
	s.mu.Lock()
	if s.left {
		s.mu.Unlock()
		return nil
	}
	s.left = true
	s.mu.Unlock()
	close(s.closing)
	s.op.page.wake()
	s.watching.Wait()
	parted := Record{Generation: s.record.Generation, Label: s.record.Label, Ident: s.record.Ident, Parting: word[:min(len(word), 200)]}
	return errors.Join(parted.write(s.lock.f), s.op.page.close(), s.lock.close())
}
