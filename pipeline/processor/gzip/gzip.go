package gzip

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/fencepost/fencepost/pipeline/processor"
)

const (
	// Name is the processor's name in manifests and configurations.
	Name = "gzip"
	// Precedence places compressing before every encryption.
	Precedence = 100
	// DefaultLevel is the level that Options' zero value stands for.
	DefaultLevel = 6
	// MaxLevel is the highest level.
	MaxLevel = 9
)

// Options say how to compress. They do not concern reading: every level is read by all.
type Options struct {
	// Level trades time for size: 1 fastest to 9 smallest, as the public tool counts. 0 means DefaultLevel.
	Level int
}

// Processor compresses and decompresses. It is immutable and safe for concurrent use.
type Processor struct{ level int }

// New returns the processor for o; a level outside 0..MaxLevel is an error.
func New(o Options) (Processor, error) {
	if o.Level < 0 || o.Level > MaxLevel {
		return Processor{}, fmt.Errorf("gzip level is %d, must be 1 (fastest) to %d (smallest)", o.Level, MaxLevel)
	}
	return Processor{level: o.Level}, nil
}

// Default returns the processor of DefaultLevel.
func Default() Processor { return Processor{level: DefaultLevel} }

// Name implements processor.Processor.
func (Processor) Name() string { return Name }

// Precedence implements processor.Processor.
func (Processor) Precedence() int { return Precedence }

// Wrap implements processor.Processor. Bytes reach w from the goroutine that calls Write or Close.
func (p Processor) Wrap(w io.Writer) (io.WriteCloser, error) {
	level := p.level
	if level == 0 {
		level = DefaultLevel
	}
	enc, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return nil, fmt.Errorf("start gzip: %w", err)
	}
	return &writer{enc: enc}, nil
}

// Unwrap implements processor.Processor. It reads nothing yet.
func (Processor) Unwrap(r io.Reader) (io.ReadCloser, error) { return newReader(r), nil }

var errClosed = errors.New("gzip stream is closed")

// writer makes errors of the encoder stick.
type writer struct {
	enc    *gzip.Writer
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
