// Package gzip is the processor that compresses with gzip (RFC 1952).
//
//	p, err := gzip.New(gzip.Options{Level: 6})
//	w, err := p.Wrap(object)          // one member; Close writes its checksum and length
//	r, err := p.Unwrap(object)        // io.EOF only after the last member's checksum was right and nothing follows
//
// It is there for what other tools read and write; zstd is faster and smaller. What Wrap writes is one ordinary member
// without a name and a time: `gzip -d` reads it on a machine that has never seen this program. Unwrap reads what `gzip`
// and `pigz` wrote, several members in a row included (that is how `cat a.gz b.gz` looks).
//
// What holds:
//
//   - Memory is bounded whatever the size of the stream: a writer takes about 1 MiB, a reader 100 KiB; the format's
//     window is 32 KiB.
//   - A stream works in the goroutine of its caller and leaves nothing behind when it is dropped.
//   - An input that ends within a member, or before the first one, is processor.ErrTruncated; a whole member followed by
//     something that is no member is processor.ErrTrailing, zeros included (the public tool passes over those: it comes
//     from tapes, we do not); everything else is processor.ErrCorrupt. A changed byte in the structure may look like a
//     cut. The header's time, system and hints mean nothing for the content and are not looked at.
//   - Zero bytes are a cut stream, not an empty one: compressing nothing gives a member of its own.
package gzip
