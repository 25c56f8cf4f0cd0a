package zstd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/fencepost/fencepost/pipeline/processor"
)

// step is the part of a frame that comes next. Its bytes are gathered (fields) or passed over (bodies).
type step int

const (
	magic       step = iota // 4 bytes; the only step at which a stream may end
	skipSize                // 4 bytes: length of a skippable frame
	skipBody                // passed over
	descriptor              // 1 byte that tells the length of the rest of the header
	headerRest              // window, dictionary id, content size
	blockHeader             // 3 bytes: last?, type, size
	blockBody               // passed over
	checksum                // 4 bytes
)

// newScanner returns a scanner of r that expects a frame.
func newScanner(r io.Reader) *scanner { return &scanner{r: r, next: magic, need: 4} }

// scanner passes r through and follows the structure of zstd frames in what passes. It holds at most one field (14
// bytes) and never looks ahead.
type scanner struct {
	r io.Reader

	next   step
	field  [16]byte
	have   int   // gathered bytes of the field
	need   int   // length of the field; 0 while a body passes
	pass   int64 // bytes of a body still to pass over
	summed bool  // the frame has a checksum
	last   bool  // the block is the frame's last
	frames int   // whole frames of data seen

	clean bool  // r ended at a place where a stream may end
	err   error // error of r, or what is wrong with the structure; sticks
}

func (s *scanner) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	s.feed(p[:n])
	switch {
	case s.err != nil: // let the decoder have the bytes; it fails on them, and err says why
		return n, nil
	case err == io.EOF:
		s.end()
		if s.err != nil {
			return n, s.err
		}
	case err != nil:
		s.err = err
	}
	return n, err
}

// end judges the place where the input ended.
func (s *scanner) end() {
	started := s.next != magic || s.have > 0
	switch {
	case !started && s.frames > 0:
		s.clean = true
	case s.next == magic && s.frames > 0 && !magicPrefix(s.field[:s.have]):
		s.err = fmt.Errorf("zstd: %d bytes after the last frame: %w", s.have, processor.ErrTrailing)
	case s.next == magic && s.frames == 0 && !magicPrefix(s.field[:s.have]):
		s.err = fmt.Errorf("zstd: not a frame: %w", processor.ErrCorrupt)
	default:
		s.err = fmt.Errorf("zstd: %w", processor.ErrTruncated)
	}
}

// feed follows the structure through p, until an error.
func (s *scanner) feed(p []byte) {
	for len(p) > 0 && s.err == nil {
		if s.pass > 0 {
			n := min(s.pass, int64(len(p)))
			s.pass -= n
			p = p[n:]
		} else {
			n := copy(s.field[s.have:s.need], p)
			s.have += n
			p = p[n:]
		}
		for s.err == nil && s.pass == 0 && s.have == s.need {
			s.advance()
		}
	}
}

// expect sets the next field; a length of 0 is complete at once.
func (s *scanner) expect(next step, need int) { s.next, s.need, s.have = next, need, 0 }

// over sets a body of n bytes to pass over; need and have are 0, so that advance follows when it has passed.
func (s *scanner) over(next step, n int64) { s.next, s.need, s.have, s.pass = next, 0, 0, n }

// advance handles the field, or the body, that is complete now.
func (s *scanner) advance() {
	f := s.field[:s.have]
	switch s.next {
	case magic:
		s.onMagic(f)
	case skipSize:
		s.over(skipBody, int64(binary.LittleEndian.Uint32(f)))
	case skipBody:
		s.expect(magic, 4)
	case descriptor:
		s.summed = f[0]&4 != 0
		s.expect(headerRest, headerLength(f[0]))
	case headerRest:
		s.expect(blockHeader, 3)
	case blockHeader:
		s.onBlock(uint32(f[0]) | uint32(f[1])<<8 | uint32(f[2])<<16)
	case blockBody:
		switch {
		case !s.last:
			s.expect(blockHeader, 3)
		case s.summed:
			s.expect(checksum, 4)
		default:
			s.frameEnds()
		}
	case checksum:
		s.frameEnds()
	}
}

func (s *scanner) frameEnds() {
	s.frames++
	s.expect(magic, 4)
}

func (s *scanner) onMagic(f []byte) {
	switch {
	case bytes.Equal(f, frameMagic()):
		s.expect(descriptor, 1)
	case f[0]&0xf0 == 0x50 && bytes.Equal(f[1:], skippableTail()):
		s.expect(skipSize, 4)
	case s.frames > 0:
		s.err = fmt.Errorf("zstd: bytes after the last frame: %w", processor.ErrTrailing)
	default:
		s.err = fmt.Errorf("zstd: not a frame: %w", processor.ErrCorrupt)
	}
}

// onBlock takes a block header: bit 0 last, bits 1-2 type (0 raw, 1 one byte repeated, 2 compressed), the rest size.
func (s *scanner) onBlock(h uint32) {
	s.last = h&1 != 0
	size := int64(h >> 3)
	switch h >> 1 & 3 {
	case 1:
		size = 1
	case 3:
		s.err = fmt.Errorf("zstd: reserved block type: %w", processor.ErrCorrupt)
		return
	}
	s.over(blockBody, size)
}

// headerLength is the number of header bytes after descriptor d: window (unless single segment), dictionary id (0, 1,
// 2, 4 by bits 0-1), content size (0, 2, 4, 8 by bits 6-7; 1 instead of 0 in a single segment).
func headerLength(d byte) int {
	single := d&0x20 != 0
	n := [4]int{0, 1, 2, 4}[d&3] + [4]int{0, 2, 4, 8}[d>>6]
	if !single || d>>6 == 0 {
		n++ // the window's byte, or the one byte of content size
	}
	return n
}

// magicPrefix tells whether b may be the beginning of a frame or a skippable frame.
func magicPrefix(b []byte) bool {
	if bytes.HasPrefix(frameMagic(), b) {
		return true
	}
	return b[0]&0xf0 == 0x50 && bytes.HasPrefix(skippableTail(), b[1:])
}

func frameMagic() []byte    { return []byte{0x28, 0xb5, 0x2f, 0xfd} }
func skippableTail() []byte { return []byte{0x2a, 0x4d, 0x18} }
