// Package processortest holds what every processor has to pass.
//
// The suite goes through the contract of package processor sentence by sentence, with streams that are whole, cut,
// changed, put together in another order and followed by rubbish. An implementation calls it from a test:
//
//	func TestConformance(t *testing.T) {
//		processortest.Run(t, processortest.Subject{Processor: zstd.Default(), Memory: 128 << 20})
//	}
//
// What holds for whoever passes:
//
//   - A cut at every place of a small stream, and at many places of a large one, is processor.ErrTruncated; so are zero
//     bytes and a stream that was never closed. There is no clean end but the true one.
//   - A changed byte never yields other content with a clean end: the error is of one of the classes, or the content
//     is the same (some formats have bytes that mean nothing). In the middle of the content it is processor.ErrCorrupt.
//   - Parts that change places, and bytes after the end, are errors before the clean end.
//   - Errors of the source and of the target come through in kind, and stick.
//   - Streams work in their caller's goroutine, leave nothing behind when they are dropped, and need memory that does
//     not depend on their length.
//
// What a single format has beyond that (levels, keys, headers, its public tool) is tested beside it. [Sample], [Wrap]
// and [Unwrap] are for those tests too.
package processortest
