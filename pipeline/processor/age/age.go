package age

import (
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/fencepost/fencepost/pipeline/processor"
)

const (
	// Name is the processor's name in manifests and configurations.
	Name = "age"
	// Precedence places encrypting behind every compressing: what is encrypted does not get smaller.
	Precedence = 50
)

// Options are the keys, see Load.
type Options struct{ Keys Keys }

// Processor encrypts and decrypts. It is immutable and safe for concurrent use, and it does not print its keys.
// It is made by New.
type Processor struct{ keys Keys }

// New returns the processor for o.
func New(o Options) Processor {
	if o.Keys.held == nil {
		o.Keys.held = new(held)
	}
	return Processor{keys: o.Keys}
}

// Name implements processor.Processor.
func (Processor) Name() string { return Name }

// Precedence implements processor.Processor.
func (Processor) Precedence() int { return Precedence }

// Wrap implements processor.Processor. It writes the header at once; bytes reach w in chunks of 64 KiB, from the
// goroutine that calls Write or Close. Without recipients and passphrase it answers processor.ErrKey.
func (p Processor) Wrap(w io.Writer) (io.WriteCloser, error) {
	if len(p.keys.recipients) == 0 {
		return nil, fmt.Errorf("age: there are no recipients to encrypt to: %w", processor.ErrKey)
	}
	enc, err := age.Encrypt(w, p.keys.recipients...)
	if err != nil {
		return nil, fmt.Errorf("age: start encrypting: %w", err)
	}
	return &writer{enc: enc}, nil
}

// Unwrap implements processor.Processor. It reads the header and opens it: a key that does not fit is processor.ErrKey
// here, before any content.
func (p Processor) Unwrap(r io.Reader) (io.ReadCloser, error) {
	if len(p.keys.identities) == 0 {
		return nil, fmt.Errorf("age: no identity and no passphrase is configured to decrypt with: %w", processor.ErrKey)
	}
	dec, err := newReader(r, p.keys.identities)
	if err != nil {
		return nil, err
	}
	return dec, nil
}

var errClosed = errors.New("age stream is closed")

// writer makes errors of the encryption stick.
type writer struct {
	enc    io.WriteCloser
	err    error
	closed bool
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.closed {
		return 0, errClosed
	}
	n, err := w.enc.Write(p)
	w.err = err
	return n, err
}

func (w *writer) Close() error {
	if w.closed || w.err != nil {
		w.closed = true
		return w.err
	}
	w.closed = true
	w.err = w.enc.Close()
	return w.err
}

var _ processor.Processor = Processor{}
