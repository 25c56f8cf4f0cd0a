package gms

import (
	"bytes"
	"crypto/ed25519"
	"testing"
)

// What a node signs is checked by the key that the group knows it by, and that key stays its own over a restart.
func TestNodesSign(t *testing.T) {
	t.Parallel()
	tg := formed(t, 1)
	n := tg.nodes["n1"]
	key, message := n.NodeKey(), []byte("what it is for\nand what it says")
	signature := n.Sign(message)
	if !ed25519.Verify(key, message, signature) || ed25519.Verify(key, append(message, '!'), signature) {
		t.Error("the signature is not of this message")
	}
	key[0] ^= 1 // the caller's own copy
	if bytes.Equal(key, n.NodeKey()) {
		t.Error("a caller changed the node's key")
	}
	key = n.NodeKey()
	tg.stop("n1")
	if again := tg.start("n1"); !bytes.Equal(again.NodeKey(), key) {
		t.Error("a restarted node has another key")
	}
}
