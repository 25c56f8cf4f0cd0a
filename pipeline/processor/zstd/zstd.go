package zstd

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/fencepost/fencepost/pipeline/processor"
)

const (
	// Name is the processor's name in manifests and configurations.
	Name = "zstd"
	// Precedence places compressing before every encryption.
	Precedence = 100
	// MaxWindow is the largest window, in bytes, that is written or accepted.
	MaxWindow = 8 << 20
	// DefaultLevel is the level that Options' zero value stands for.
	DefaultLevel = 2
)

// Options say how to compress. They do not concern reading: every level is read by all.
type Options struct {
	// Level trades time for size: 1 fastest (about `zstd -1`), 2 default (about `zstd -3`), 3 better (about `zstd -7`),
	// 4 best (about `zstd -11`, some ten times slower than 2). 0 means DefaultLevel.
	Level int
}

// Processor compresses and decompresses. It is immutable and safe for concurrent use.
type Processor struct {
	level zstd.EncoderLevel
}

// New returns the processor for o; a level outside 0..4 is an error.
func New(o Options) (Processor, error) {
	levels := []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression}
	level := o.Level
	if level == 0 {
		level = DefaultLevel
	}
	if level < 1 || level > len(levels) {
		return Processor{}, fmt.Errorf("zstd level is %d, must be 1 (fastest) to %d (best)", o.Level, len(levels))
	}
	return Processor{level: levels[level-1]}, nil
}

// Default returns the processor of DefaultLevel.
func Default() Processor { return Processor{level: zstd.SpeedDefault} }

// Name implements processor.Processor.
func (Processor) Name() string { return Name }

// Precedence implements processor.Processor.
func (Processor) Precedence() int { return Precedence }

// Wrap implements processor.Processor. Bytes reach w in blocks of at most 128 KiB, from the goroutine that calls Write
// or Close.
func (p Processor) Wrap(w io.Writer) (io.WriteCloser, error) {
	enc, err := zstd.NewWriter(w,
		zstd.WithEncoderLevel(p.level),
		zstd.WithWindowSize(MaxWindow),
		zstd.WithEncoderConcurrency(1), // works in the caller's goroutine: nothing is left of a dropped writer
		zstd.WithEncoderCRC(true),
		zstd.WithZeroFrames(true)) // nothing compresses to a frame, never to zero bytes
	if err != nil {
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	return &writer{enc: enc}, nil
}

// Unwrap implements processor.Processor.
func (p Processor) Unwrap(r io.Reader) (io.ReadCloser, error) {
	in := newScanner(r)
	dec, err := zstd.NewReader(in,
		zstd.WithDecoderConcurrency(1), // reads in the caller's goroutine, no byte further than needed
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow))
	if err != nil {
		return nil, fmt.Errorf("start reading zstd: %w", err)
	}
	return &reader{in: in, dec: dec}, nil
}

var errClosed = errors.New("zstd stream is closed")

// writer makes errors of the encoder stick.
type writer struct {
	enc    *zstd.Encoder
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

// reader classifies: the scanner knows the structure and the source's errors, the decoder knows the content.
type reader struct {
	in  *scanner
	dec *zstd.Decoder
	err error
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err := r.dec.Read(p)
	if err != nil {
		r.err = r.classify(err)
	}
	return n, r.err
}

func (r *reader) classify(err error) error {
	if r.in.err != nil {
		return r.in.err
	}
	if err == io.EOF {
		if !r.in.clean {
			return fmt.Errorf("zstd: decoder stopped before the end: %w", processor.ErrCorrupt)
		}
		return io.EOF
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return fmt.Errorf("zstd: window is larger than %d MiB: %w", MaxWindow>>20, processor.ErrCorrupt)
	}
	return fmt.Errorf("zstd: %w: %w", processor.ErrCorrupt, err)
}

// Close implements io.Closer; it does not close the underlying reader.
func (r *reader) Close() error {
	if r.err != errClosed {
		r.err = errClosed
		r.dec.Close()
	}
	return nil
}
