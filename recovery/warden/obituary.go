package warden

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// What an obituary says of a run.
type What byte

// A run first dies and then is quiesced: nothing that it started is left on its machine.
const (
	Died     What = 1
	Quiesced What = 2
)

// String is for logs.
func (w What) String() string {
	switch w {
	case Died:
		return "died"
	case Quiesced:
		return "quiesced"
	}
	return fmt.Sprintf("what %d", byte(w))
}

// Obituary is what a warden says of a run of its node. It has no time in it: clocks differ. Whoever gets one twice may
// recognize it by its nonce; it stays true for ever.
//
// Signed it is, with numbers in big endian,
//
//	 0   8  "FPOBIT1\n"
//	 8   1  What: 1 died, 2 quiesced
//	 9  16  run id: as which the node stood in its group
//	25   8  generation of the home, in which the run was
//	33  16  nonce, random
//	49   1  n, length of the node's name, 1 to 63
//	50   n  the node's name
//	50+n 64 ed25519 signature (pure, no context) over all bytes before it, by the run's warden key
//
// and nothing after it. The run registers the public key when it is opened; no other key may speak for it.
type Obituary struct {
	What       What     // died, or nothing is left of it
	Run        [16]byte // that it speaks of, and no other
	Generation uint64   // of the home in which the run stood
	Nonce      [16]byte // random; made by Sign
	Node       string   // the run's node, 1 to 63 bytes
}

const (
	obituaryMagic = "FPOBIT1\n"
	obituaryFixed = 50
	maxNodeName   = 63
)

// Sign makes the signed bytes. The nonce is made here. Errors: a name of a length that is not allowed, a What that is none.
func (o Obituary) Sign(key ed25519.PrivateKey) ([]byte, error) {
	if len(o.Node) < 1 || len(o.Node) > maxNodeName {
		return nil, fmt.Errorf("sign an obituary: the node's name has %d bytes", len(o.Node))
	}
	if o.What != Died && o.What != Quiesced {
		return nil, fmt.Errorf("sign an obituary: %v", o.What)
	}
	_, _ = rand.Read(o.Nonce[:]) // cannot fail
	b := append([]byte(obituaryMagic), byte(o.What))
	b = append(b, o.Run[:]...)
	b = binary.BigEndian.AppendUint64(b, o.Generation)
	b = append(b, o.Nonce[:]...)
	b = append(b, byte(len(o.Node)))
	b = append(b, o.Node...)
	return append(b, ed25519.Sign(key, b)...), nil
}

// ErrForged: the bytes are no obituary that this key has signed.
var ErrForged = errors.New("not an obituary by this warden")

// Verify reads signed bytes. Any change of any byte, anything missing and anything behind is ErrForged.
func Verify(key ed25519.PublicKey, signed []byte) (Obituary, error) {
	if len(key) != ed25519.PublicKeySize || len(signed) < obituaryFixed || string(signed[:8]) != obituaryMagic {
		return Obituary{}, ErrForged
	}
	n := int(signed[49])
	end := obituaryFixed + n
	if n < 1 || n > maxNodeName || len(signed) != end+ed25519.SignatureSize || !ed25519.Verify(key, signed[:end], signed[end:]) {
		return Obituary{}, ErrForged
	}
	o := Obituary{What: What(signed[8]), Generation: binary.BigEndian.Uint64(signed[25:]), Node: string(signed[obituaryFixed:end])}
	copy(o.Run[:], signed[9:25])
	copy(o.Nonce[:], signed[33:49])
	if o.What != Died && o.What != Quiesced {
		return Obituary{}, ErrForged
	}
	return o, nil
}
