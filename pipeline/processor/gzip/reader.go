package gzip

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/fencepost/fencepost/pipeline/processor"
)

// reader reads member by member, so that it knows what stands between two of them: another member, or rubbish.
type reader struct {
	src     *source
	in      *bufio.Reader // never read further than needed by the decoder, because it can be read byte by byte
	dec     *gzip.Reader
	members int
	within  bool // a member's header was read and its end was not
	err     error
}

func newReader(r io.Reader) *reader {
	src := &source{r: r}
	return &reader{src: src, in: bufio.NewReaderSize(src, 32<<10), dec: new(gzip.Reader)}
}

func (r *reader) Read(p []byte) (int, error) {
	for r.err == nil && len(p) > 0 {
		if !r.within {
			r.err = r.begin()
			continue
		}
		n, err := r.dec.Read(p)
		switch {
		case err == io.EOF:
			r.within = false
			r.members++
		case err != nil:
			r.err = r.classify(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, r.err
}

// begin reads the header of the next member; io.EOF where the stream may end and does.
func (r *reader) begin() error {
	head, err := r.in.Peek(2)
	switch {
	case r.src.err != nil:
		return r.src.err
	case len(head) == 0 && r.members > 0:
		return io.EOF
	case len(head) == 0 || len(head) == 1 && head[0] == 0x1f:
		return fmt.Errorf("gzip: %w", processor.ErrTruncated)
	case (err != nil || head[0] != 0x1f || head[1] != 0x8b) && r.members > 0:
		return fmt.Errorf("gzip: bytes after the last member: %w", processor.ErrTrailing)
	case err != nil || head[0] != 0x1f || head[1] != 0x8b:
		return fmt.Errorf("gzip: not a member: %w", processor.ErrCorrupt)
	}
	if err := r.dec.Reset(r.in); err != nil {
		return r.classify(err)
	}
	r.dec.Multistream(false)
	r.within = true
	return nil
}

func (r *reader) classify(err error) error {
	if r.src.err != nil {
		return r.src.err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fmt.Errorf("gzip: %w", processor.ErrTruncated)
	}
	return fmt.Errorf("gzip: %w: %w", processor.ErrCorrupt, err)
}

// Close implements io.Closer; it does not close the underlying reader.
func (r *reader) Close() error {
	r.err = errClosed
	return nil
}

// source remembers the error of the underlying reader, which the decoder may rename.
type source struct {
	r   io.Reader
	err error // never io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
