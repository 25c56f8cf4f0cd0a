// Package age is the processor that encrypts in the age format (age-encryption.org/v1).
//
//	keys, err := age.Load(age.Files{Recipients: []string{"age1…"}, Identity: "/etc/fencepost/restore.key"})
//	p, err := age.New(age.Options{Keys: keys})
//	w, err := p.Wrap(object)          // header at once, chunks of 64 KiB, Close writes the last one
//	r, err := p.Unwrap(object)        // answers processor.ErrKey when no key opens the header
//
// Whoever makes backups needs recipients only: public keys (age1…, or ssh-ed25519 and ssh-rsa lines), which open nothing.
// Whoever restores needs an identity: a file of AGE-SECRET-KEY lines, or an ssh private key without a passphrase. Both
// can be a passphrase instead, which then is the only key of an object (the format wants it so). A node without an
// identity makes backups and cannot read them: that is a choice, and Unwrap says so.
//
// What Wrap writes is what the public tool writes: `age -d -i restore.key` opens it on a machine that has never seen
// this program, and Unwrap opens what `age -r` wrote. Armored files (with BEGIN and END lines) are not read.
//
// What holds:
//
//   - The key is checked in the header, by Unwrap, before a byte of content is read: a wrong key is processor.ErrKey. So
//     is a changed byte in that part of the header which holds the wrapped key; the two cannot be told apart.
//   - Each chunk is authenticated with its number and with whether it is the last one. Chunks that were changed or
//     changed places are processor.ErrCorrupt; an end at a chunk's border is processor.ErrTruncated; more after a full
//     last chunk is processor.ErrTrailing. No byte of a chunk is handed out before the chunk was found right.
//   - A last chunk that does not authenticate was cut, changed, or added to: nobody can tell which. The error is both
//     processor.ErrTruncated and processor.ErrCorrupt, and says so.
//   - Memory is bounded whatever the size: some 200 KiB a stream. A passphrase is stretched by scrypt when a stream
//     begins: 64 MiB for what Wrap writes, at most 256 MiB for what other tools wrote.
//   - Secrets never show in errors: not a line of an identity file, not a passphrase.
package age
