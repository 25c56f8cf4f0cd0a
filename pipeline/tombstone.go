package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// stored is a manifest with the version of its object.
type stored struct {
	Manifest Manifest
	Text     []byte // as it lies there
	Version  string
}

// readManifest reads one attempt's manifest; it must say the same backup and token as its path.
func readManifest(ctx context.Context, st storage.Storage, backup string, token uint64) (stored, error) {
	r, info, err := st.Get(ctx, ManifestPath(backup, token))
	if err != nil {
		return stored{}, fmt.Errorf("get manifest: %w", err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, MaxManifest+1))
	if err != nil {
		return stored{}, fmt.Errorf("read manifest: %w", err)
	}
	m, err := DecodeManifest(bytes.NewReader(text))
	if err != nil {
		return stored{}, fmt.Errorf("%w: %w", errManifest, err)
	}
	if m.Backup != backup || m.Token != token {
		return stored{}, fmt.Errorf("%w: that of backup %s, token %d, says %s, %d", errManifest, backup, token, m.Backup, m.Token)
	}
	return stored{Manifest: m, Text: text, Version: info.Version}, nil
}

// entomb creates tomb if its attempt has no manifest. It returns the real manifest when the attempt was committed in
// this storage before, and nil when it never can be.
func entomb(ctx context.Context, st storage.Storage, tomb Manifest) (*Manifest, error) {
	data, err := tomb.Encode()
	if err != nil {
		return nil, err
	}
	_, err = st.Put(ctx, ManifestPath(tomb.Backup, tomb.Token), bytes.NewReader(data), storage.Condition{})
	if err == nil {
		return nil, nil
	}
	if !errors.Is(err, storage.ErrExists) {
		return nil, fmt.Errorf("put tombstone: %w", err)
	}
	there, err := readManifest(ctx, st, tomb.Backup, tomb.Token)
	if err != nil {
		return nil, err
	}
	if there.Manifest.Void {
		return nil, nil
	}
	return &there.Manifest, nil
}

// voidManifest puts tomb in the place of the attempt's manifest, whether there is one or not. The place is never
// empty, so that a late owner cannot commit in between.
func voidManifest(ctx context.Context, st storage.Storage, tomb Manifest) error {
	data, err := tomb.Encode()
	if err != nil {
		return err
	}
	for {
		real, err := entomb(ctx, st, tomb)
		if err != nil || real == nil {
			return err
		}
		there, err := readManifest(ctx, st, tomb.Backup, tomb.Token)
		if err != nil {
			return err
		}
		_, err = st.Put(ctx, ManifestPath(tomb.Backup, tomb.Token), bytes.NewReader(data), storage.Condition{Version: there.Version})
		if !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
}

// attemptsOf lists the objects of a backup in a storage, per token.
func attemptsOf(ctx context.Context, st storage.Storage, backup string) (map[uint64][]string, error) {
	found := map[uint64][]string{}
	for info, err := range st.List(ctx, backup) {
		if err != nil {
			return nil, fmt.Errorf("list objects of backup %s: %w", backup, err)
		}
		if b, token, part, ok := ParsePath(info.Name); ok && b == backup {
			found[token] = append(found[token], part)
		}
	}
	return found, nil
}

// removeData removes an attempt's objects but its manifest. In an append-only storage they stay.
func removeData(ctx context.Context, st storage.Storage, backup string, token uint64) error {
	if storage.Keeps(ctx, st) {
		return nil
	}
	found, err := attemptsOf(ctx, st, backup)
	if err != nil {
		return err
	}
	for _, part := range found[token] {
		if part == manifestName {
			continue
		}
		if err := st.Delete(ctx, ObjectPath(backup, token, part)); err != nil {
			return fmt.Errorf("delete %s: %w", part, err)
		}
	}
	return nil
}

// revertBelow removes from a storage what attempts with a token below bound left: real manifests become void first, then
// the data goes. Tombstones stay.
func revertBelow(ctx context.Context, st storage.Storage, backup string, bound uint64, tomb func(token uint64) Manifest) error {
	found, err := attemptsOf(ctx, st, backup)
	if err != nil {
		return err
	}
	for token, parts := range found {
		if token >= bound {
			continue
		}
		for _, part := range parts {
			if part == manifestName {
				if err := voidManifest(ctx, st, tomb(token)); err != nil {
					return err
				}
			}
		}
		if err := removeData(ctx, st, backup, token); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a backup's attempts up to and including token from a storage: manifests first, then data. Tombstones stay
// for the sweep: they keep late owners from committing. Idempotent; newer attempts are not touched, so a late call does no
// harm. The caller has made sure that the ledger's entry is deleting or gone (PROTOCOL.md 29).
func Remove(ctx context.Context, st storage.Storage, backup string, token uint64) error {
	if err := removeManifests(ctx, st, backup, token); err != nil {
		return err
	}
	found, err := attemptsOf(ctx, st, backup)
	if err != nil {
		return err
	}
	for t := range found {
		if t <= token {
			if err := removeData(ctx, st, backup, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeManifests removes the manifests of a backup's attempts up to and including token, but tombstones. One that cannot be
// understood goes too.
func removeManifests(ctx context.Context, st storage.Storage, backup string, token uint64) error {
	found, err := attemptsOf(ctx, st, backup)
	if err != nil {
		return err
	}
	for t, parts := range found {
		if t > token || !slices.Contains(parts, manifestName) {
			continue
		}
		if there, err := readManifest(ctx, st, backup, t); err == nil && there.Manifest.Void {
			continue
		}
		if err := st.Delete(ctx, ManifestPath(backup, t)); err != nil {
			return fmt.Errorf("delete manifest: %w", err)
		}
	}
	return nil
}

// voidManifests puts tombstones in the place of the real manifests of a backup's attempts up to and including token, where
// nothing can be removed. Void ones, and those that cannot be understood, count for nobody: they stay as they are.
func voidManifests(ctx context.Context, st storage.Storage, backup string, token uint64, tomb func(token uint64) Manifest) error {
	found, err := attemptsOf(ctx, st, backup)
	if err != nil {
		return err
	}
	for t, parts := range found {
		if t > token || !slices.Contains(parts, manifestName) {
			continue
		}
		there, err := readManifest(ctx, st, backup, t)
		switch {
		case errors.Is(err, errManifest), err == nil && there.Manifest.Void:
			continue
		case err != nil:
			return err
		}
		if err := voidManifest(ctx, st, tomb(t)); err != nil {
			return err
		}
	}
	return nil
}
