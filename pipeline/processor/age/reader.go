package age

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"

	"github.com/fencepost/fencepost/pipeline/processor"
)

const (
	intro     = "age-encryption.org/v1\n"
	footer    = "---"
	nonceSize = 16
	chunkSize = 64<<10 + 16 // with its tag
	maxHeader = 1 << 20     // bytes; a recipient takes some 100, an ssh-rsa one 800
)

// reader classifies what the decryption finds by where in the payload the source ended.
type reader struct {
	payload *source
	dec     io.Reader
	err     error
}

// newReader reads the header and opens it with one of ids.
func newReader(r io.Reader, ids []age.Identity) (*reader, error) {
	src := &source{r: r}
	in := bufio.NewReader(src)
	header, err := readHeader(in)
	if err != nil {
		if src.err != nil {
			err = src.err
		}
		return nil, fmt.Errorf("age: read the header: %w", err)
	}
	payload := &source{r: in}
	dec, err := age.Decrypt(io.MultiReader(bytes.NewReader(header), payload), ids...)
	var no *age.NoIdentityMatchError
	switch {
	case errors.As(err, &no):
		return nil, fmt.Errorf("age: the object is encrypted to other keys (%s): %w", strings.Join(no.StanzaTypes, ", "), processor.ErrKey)
	case err != nil:
		return nil, fmt.Errorf("age: open the header: %w: %w", processor.ErrCorrupt, err)
	}
	return &reader{payload: payload, dec: dec}, nil
}

// readHeader reads the text up to its MAC line and the nonce behind it, and nothing further.
func readHeader(in *bufio.Reader) ([]byte, error) {
	var header []byte
	for line := 0; ; line++ {
		start := len(header)
		for {
			part, err := in.ReadSlice('\n')
			header = append(header, part...)
			if line == 0 && !matches(header) {
				return nil, fmt.Errorf("not an age file: %w", processor.ErrCorrupt)
			}
			if len(header) > maxHeader {
				return nil, fmt.Errorf("longer than %d bytes: %w", maxHeader, processor.ErrCorrupt)
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			if err != nil {
				return nil, cut(err)
			}
			break
		}
		if bytes.HasPrefix(header[start:], []byte(footer)) {
			break
		}
	}
	nonce := make([]byte, nonceSize)
	if _, err := io.ReadFull(in, nonce); err != nil {
		return nil, cut(err)
	}
	return append(header, nonce...), nil
}

// matches tells whether b may be the first line, or its beginning.
func matches(b []byte) bool { return strings.HasPrefix(intro, string(b)) }

func cut(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return processor.ErrTruncated
	}
	return err
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	calls := r.payload.calls
	n, err := r.dec.Read(p)
	if err != nil {
		r.err = r.classify(err, r.payload.calls > calls)
	}
	return n, r.err
}

// classify takes an error of the decryption. asked says whether the source was read in the call that failed: a chunk that
// does not authenticate was read in that call; what follows a last chunk was found together with the chunk, one call
// before.
func (r *reader) classify(err error, asked bool) error {
	switch {
	case err == io.EOF:
		return io.EOF
	case r.payload.err != nil:
		return fmt.Errorf("age: %w", r.payload.err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("age: the last chunk is missing: %w", processor.ErrTruncated)
	case r.payload.ended && r.payload.n%chunkSize != 0:
		return fmt.Errorf("age: the last chunk does not authenticate, so it was cut, changed, or added to: %w, or %w",
			processor.ErrTruncated, processor.ErrCorrupt)
	case !asked:
		return fmt.Errorf("age: %w", processor.ErrTrailing)
	}
	return fmt.Errorf("age: %w: %w", processor.ErrCorrupt, err)
}

// Close implements io.Closer; it does not close the underlying reader.
func (r *reader) Close() error {
	r.err = errClosed
	return nil
}

// source counts, and remembers how the underlying reader ended.
type source struct {
	r     io.Reader
	n     int64
	calls int // of Read
	ended bool
	err   error // never io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	s.calls++
	switch {
	case err == io.EOF:
		s.ended = true
	case err != nil:
		s.err = err
	}
	return n, err
}
