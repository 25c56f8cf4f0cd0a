package app

import (
	"context"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/gms"
)

// Keyring implements admin.Keyring.
func (p people) Keyring(ctx context.Context) (api.Keyring, error) {
	return keyringOf(p.a.group.KeyringList(ctx))
}

// AddGossipKey implements admin.Keyring.
func (p people) AddGossipKey(ctx context.Context, k api.AddKey) (api.Keyring, error) {
	if k.Generate {
		var err error
		if k.Key, err = offline.NewGossipKey(); err != nil {
			return api.Keyring{}, err
		}
	}
	return keyringOf(p.a.group.KeyringAdd(ctx, k.Key))
}

// UseGossipKey implements admin.Keyring.
func (p people) UseGossipKey(ctx context.Context, k api.KeyName) (api.Keyring, error) {
	return keyringOf(p.a.group.KeyringUse(ctx, k.Fingerprint))
}

// RemoveGossipKey implements admin.Keyring.
func (p people) RemoveGossipKey(ctx context.Context, k api.KeyName) (api.Keyring, error) {
	return keyringOf(p.a.group.KeyringRemove(ctx, k.Fingerprint))
}

func keyringOf(r gms.KeyringReport, err error) (api.Keyring, error) {
	out := api.Keyring{Version: r.Version, Keys: keysOf(r.Keys), Complete: r.Complete}
	for _, m := range r.Members {
		out.Members = append(out.Members, api.KeyringMember{Node: m.Node, Version: m.Version, Keys: keysOf(m.Keys), Problem: m.Problem})
	}
	return out, err
}

func keysOf(list []gms.KeyInfo) []api.KeyringKey {
	var out []api.KeyringKey
	for _, k := range list {
		out = append(out, api.KeyringKey{Fingerprint: k.Fingerprint, InUse: k.InUse})
	}
	return out
}
