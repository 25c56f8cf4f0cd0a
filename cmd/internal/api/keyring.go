package api

import (
	"context"
	"fmt"
	"io"
)

// PathKeyring is the path of the gossip keys.
const PathKeyring = "/api/v1/keyring"

// Keyring is what all nodes have of gossip keys. Keys are named by their fingerprints; no answer holds one.
type Keyring struct {
	Version uint64       `json:"version"` // counts the changes
	Keys    []KeyringKey `json:"keys"`
	// Members are the members of the view and the servers of the log's configuration.
	Members  []KeyringMember `json:"members"`
	Complete bool            `json:"complete"` // each of them has the newest ring
}

// KeyringKey is one key.
type KeyringKey struct {
	Fingerprint string `json:"fingerprint"`
	InUse       bool   `json:"in_use"` // it encrypts; the others decrypt
}

// KeyringMember is what one node has.
type KeyringMember struct {
	Node    string       `json:"node"`
	Version uint64       `json:"version"`
	Keys    []KeyringKey `json:"keys"`
	Problem string       `json:"problem"` // why nothing is known of it, or why it did not take a change
}

// AddKey asks for a key to be given to all: one of 16, 24 or 32 bytes, or one that the daemon draws.
type AddKey struct {
	Key      []byte `json:"key,omitempty"`
	Generate bool   `json:"generate,omitempty"`
}

// Format keeps the key out of whatever it is printed into.
func (k AddKey) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, fmt.Sprintf("{key of %d bytes, generate %t}", len(k.Key), k.Generate))
}

// KeyName names a key by its fingerprint.
type KeyName struct {
	Fingerprint string `json:"fingerprint"`
}

// Keyring asks all nodes for their gossip keys.
func (c *Client) Keyring(ctx context.Context) (Keyring, error) {
	return Get[Keyring](ctx, c, PathKeyring)
}

// AddGossipKey gives all nodes a key.
func (c *Client) AddGossipKey(ctx context.Context, k AddKey) (Keyring, error) {
	return post[Keyring](ctx, c, PathKeyring, k)
}

// Rekey replaces the gossip keys of all nodes by one that the daemon draws.
func (c *Client) Rekey(ctx context.Context) (Keyring, error) {
	return post[Keyring](ctx, c, PathKeyring+"/rekey", struct{}{})
}

// UseGossipKey has all nodes encrypt with a key.
func (c *Client) UseGossipKey(ctx context.Context, k KeyName) (Keyring, error) {
	return post[Keyring](ctx, c, PathKeyring+"/use", k)
}

// RemoveGossipKey takes a key away from all nodes.
func (c *Client) RemoveGossipKey(ctx context.Context, k KeyName) (Keyring, error) {
	return post[Keyring](ctx, c, PathKeyring+"/remove", k)
}
