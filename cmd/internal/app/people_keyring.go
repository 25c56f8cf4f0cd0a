package app

import (
	"context"
	"strings"

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

// Rekey implements admin.Keyring. The old keys go last: who is cut off in between finds the way back by any of them.
func (p people) Rekey(ctx context.Context) (api.Keyring, error) {
	before, err := p.Keyring(ctx)
	if err != nil || !before.Complete {
		return before, orIncomplete(before, err)
	}
	now, err := p.AddGossipKey(ctx, api.AddKey{Generate: true})
	if err != nil || !now.Complete {
		return now, orIncomplete(now, err)
	}
	next := now.Keys[len(now.Keys)-1].Fingerprint
	now, err = p.UseGossipKey(ctx, api.KeyName{Fingerprint: next})
	if err != nil || !now.Complete {
		return now, orIncomplete(now, err)
	}
	for _, k := range before.Keys {
		if now, err = p.RemoveGossipKey(ctx, api.KeyName{Fingerprint: k.Fingerprint}); err != nil {
			return now, err
		}
	}
	return now, nil
}

// orIncomplete is err, or that some node has not got what all must have before the next step.
func orIncomplete(k api.Keyring, err error) error {
	if err != nil {
		return err
	}
	var missed []string
	for _, m := range k.Members {
		if m.Version != k.Version || m.Problem != "" {
			missed = append(missed, m.Node)
		}
	}
	return &api.Error{Code: api.CodeConflict, Message: "not all nodes have the same gossip keys: " + strings.Join(missed, ", "),
		Hint: "start what is down, or forget a node that does not come back, and try again; fencepost keyring list shows who has which"}
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
