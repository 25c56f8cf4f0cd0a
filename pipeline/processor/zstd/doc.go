// Package zstd is the processor that compresses with Zstandard (RFC 8878).
//
//	p, err := zstd.New(zstd.Options{Level: 2})
//	w, err := p.Wrap(object)          // one frame with a checksum; Close writes its end
//	r, err := p.Unwrap(object)        // io.EOF only after the last frame's checksum was right and nothing follows
//
// What Wrap writes is one ordinary frame: `zstd -d` reads it on a machine that has never seen this program, and Unwrap
// reads what `zstd` wrote, several frames in a row included (that is how `cat a.zst b.zst` looks).
//
// What holds:
//
//   - Memory is bounded whatever the size of the stream: the window is at most 8 MiB in both directions, and a stream
//     that asks for more is refused before the memory is taken. A writer takes about 25 MiB (levels 1 to 3) or 60 MiB
//     (level 4), a reader about 10 MiB.
//   - A stream works in the goroutine of its caller, so it takes one core at most, and one that is dropped without
//     Close leaves nothing behind.
//   - The decoder's own idea of the end of a stream is not trusted: it takes some cuts for a clean end. A scanner walks
//     the frames' structure beside it (magic, header, blocks, checksum) and decides: an input that ends within a frame,
//     or before the first one, is processor.ErrTruncated; a whole frame followed by something that is no frame is
//     processor.ErrTrailing; everything else that the decoder refuses is processor.ErrCorrupt. A flipped byte in the
//     length of a block cannot be told from a cut and may be reported as one.
//   - Zero bytes are a cut stream, not an empty one: compressing nothing gives a frame of its own.
package zstd
