package gms

import (
	"crypto/ed25519"
	"slices"
)

// NodeKey is the public key of this node's home, by which the group knows it. It is there once Start has returned.
func (g *Group) NodeKey() ed25519.PublicKey { return slices.Clone(g.home.publicKey()) }

// Sign signs a message of the host with the key of this node's home. The host's messages begin with what they are for, so
// that a signature for one purpose is none for another. It does not block; it may be called once Start has returned.
func (g *Group) Sign(message []byte) []byte { return ed25519.Sign(g.home.key, message) }
