package processor

import (
	"errors"
	"io"
	"strings"
)

// Errors a caller branches on. Implementations wrap them.
var (
	// ErrTruncated: the stream ends before its end marker.
	ErrTruncated = errors.New("stream is cut")
	// ErrCorrupt: the stream is not what the processor wrote.
	ErrCorrupt = errors.New("stream is corrupt")
	// ErrTrailing: bytes follow the end of the stream.
	ErrTrailing = errors.New("bytes after the end of the stream")
	// ErrKey: the stream is encrypted and none of the keys at hand opens it. It is found at the stream's beginning,
	// mostly by Unwrap itself, before a byte of content is read.
	ErrKey = errors.New("no key fits")
)

// A Processor is a byte filter with an inverse: a compressor, an encryption. It is a value, safe for concurrent use;
// each Wrap and Unwrap makes an independent stream. What it writes is exactly what the public tool of that name would
// have written, so that a backup can be read without this program.
type Processor interface {
	// Name is the format's name as the manifest keeps it ("zstd"); it finds the processor again at restore.
	Name() string
	// Precedence orders processors: the higher one sees the source's bytes first (compress 100 before encrypt 50). Two
	// processors of one chain never share a precedence.
	Precedence() int
	// Wrap returns a writer whose bytes go through the filter to w. It may write the stream's header at once. Close
	// completes the stream (end marker, checksum) and does not close w; without Close what was written is detectably
	// cut, and nothing has to be released. After an error every call fails.
	Wrap(w io.Writer) (io.WriteCloser, error)
	// Unwrap returns a reader of the original bytes. It answers io.EOF only after the end marker was seen and nothing
	// follows; a cut stream is ErrTruncated, never a clean end. Unwrap may read the stream's header from r, and then
	// answers with what is wrong with it. Close releases resources and does not close r.
	Unwrap(r io.Reader) (io.ReadCloser, error)
}

// Keyed is a Processor whose streams are opened by keys.
type Keyed interface {
	Processor
	// KitID is a fingerprint of the public side of the keys, in their order: the same wherever the same is configured. It
	// gives nothing away. Empty: there is none that would not.
	KitID() string
	// Opens tells whether it has a key at all that opens: one that only closes is for nodes that restore nothing.
	Opens() bool
}

// KitID is the fingerprint of what is needed to read what ps have written, at least as far as keys go; empty when no keys
// are needed, or they have none.
func KitID(ps []Processor) string {
	var ids []string
	for _, p := range ps {
		if k, ok := p.(Keyed); ok && k.KitID() != "" {
			ids = append(ids, k.KitID())
		}
	}
	return strings.Join(ids, "+")
}
