// Package processor is the contract of byte filters (compressors, encryptions) and the little that is needed to put
// several of them in a row.
//
// A [Processor] has a direction and its inverse. Writing goes through a chain in descending precedence: the processor of
// the highest precedence sees the source's bytes first, so that compressing (100) happens before encrypting (50):
//
//	chain, err := processor.Order(zstd.Default(), cipher)
//	w, err := processor.WrapAll(chain, object)     // source → zstd → cipher → object
//	_, err = io.Copy(w, dump)
//	err = w.Close()                                // only now is the object whole
//	names := processor.Names(chain)                // ["zstd", "age"], kept in the manifest
//
// Reading goes through the inverses in exactly the reverse order. The names come from the manifest and are looked up in
// a [Registry], which is a value made in the composition root; there is no list that packages add themselves to:
//
//	registry, err := processor.NewRegistry(zstd.Default(), cipher)
//	r, err := registry.UnwrapAll(names, object)    // object → cipher⁻¹ → zstd⁻¹ → r
//
// What holds:
//
//   - A stream without Close is detectably cut. Whoever gives up in the middle drops the writer; nothing has to be
//     released, because a writer holds no goroutine and no descriptor.
//   - Close works from the source's side to the object's side and stops at the first error: when one layer could not be
//     completed, the layers below it get no end marker either.
//   - A reader answers io.EOF only when every layer saw its own end and nothing follows. A cut is [ErrTruncated], a
//     changed byte [ErrCorrupt], an appendix [ErrTrailing], a stream that no key opens [ErrKey]; errors of the underlying
//     reader come through unchanged in kind. What was read before such an error must not be kept.
//   - A chain is checked before the first byte: two processors of one precedence or one name are refused, and so is a
//     name that no processor answers to.
//
// The empty chain is a chain: bytes pass through, and cuts are then for the caller to find (the manifest has size and
// hash). This package imports no implementation and no foreign library.
package processor
