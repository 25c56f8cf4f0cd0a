package cli

import (
	"context"
	"encoding/base64"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// keyring is a group of three of which n3 is down.
func keyring(version uint64, complete bool, keys ...string) api.Keyring {
	var infos []api.KeyringKey
	for i, k := range keys {
		infos = append(infos, api.KeyringKey{Fingerprint: k, InUse: i == 0})
	}
	r := api.Keyring{Version: version, Keys: infos, Complete: complete}
	for _, n := range []string{"n1", "n2", "n3"} {
		r.Members = append(r.Members, api.KeyringMember{Node: n, Version: version, Keys: infos})
	}
	if !complete {
		r.Members[2] = api.KeyringMember{Node: "n3", Problem: "no answer: connection refused"}
	}
	return r
}

const oldKey, newKey = "0123456789abcdef", "fedcba9876543210"

func (f *fake) Keyring(context.Context) (api.Keyring, error) {
	return keyring(4, false, oldKey, newKey), nil
}

func (f *fake) AddGossipKey(_ context.Context, k api.AddKey) (api.Keyring, error) {
	if !k.Generate && base64.StdEncoding.EncodeToString(k.Key) != "MDEyMzQ1Njc4OWFiY2RlZg==" {
		return api.Keyring{}, &api.Error{Code: api.CodeFailed, Message: "another key arrived"}
	}
	return keyring(5, k.Generate, oldKey, newKey), nil
}

func (f *fake) Rekey(context.Context) (api.Keyring, error) { return keyring(8, true, newKey), nil }

func (f *fake) UseGossipKey(_ context.Context, k api.KeyName) (api.Keyring, error) {
	if k.Fingerprint != newKey {
		return api.Keyring{}, &api.Error{Code: api.CodeConflict, Message: "use gossip key: not everybody is proven to have the gossip key: n3: has it not"}
	}
	return keyring(6, true, newKey, oldKey), nil
}

func (f *fake) RemoveGossipKey(context.Context, api.KeyName) (api.Keyring, error) {
	return keyring(7, true, newKey), nil
}
