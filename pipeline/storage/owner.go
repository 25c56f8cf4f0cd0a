package storage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Errors a caller branches on: what is wrong with the owner of a storage.
var (
	// ErrNoOwner: the storage has no owner object: it was never added, or what is visible is not it (not mounted).
	ErrNoOwner = errors.New("storage has no owner object")
	// ErrForeign: the storage belongs to another cluster.
	ErrForeign = errors.New("storage belongs to another cluster")
	// ErrOther: the storage is the cluster's own, but not the one that is meant: the same path on another disk or node.
	ErrOther = errors.New("not the storage that the group knows under this name")
	// ErrAhead: the storage has seen a higher number than the group has given out: the group was rolled back, or another one
	// of the same id uses the storage too. CheckHigh answers it.
	ErrAhead = errors.New("storage is ahead of the group")
)

const (
	ownerFormat  = 1
	ownerMaxSize = 64 << 10 // bytes; what is larger is no owner object
	ownerTries   = 16       // compare-and-set rounds before ErrStale goes to the caller
)

// Owner is the content of the owner object.
type Owner struct {
	Format     int    `json:"format"`     // 1
	Storage    string `json:"storage"`    // random 128-bit id of this storage, hex; never changes
	Cluster    string `json:"cluster"`    // id of the cluster that it belongs to
	Generation uint64 `json:"generation"` // 1 for the first owner, one more for each takeover
	High       uint64 `json:"high"`       // highest number (token, position) known to be given out; never goes down
}

// Adoption says how a storage is added.
type Adoption struct {
	Cluster  string // id of the adopting cluster; not empty
	High     uint64 // highest number that it has given out so far
	TakeOver bool   // a foreign owner is replaced; only ever set when a person asked for it
}

// Adopt makes the owner object of a storage that is being added and returns it. When the cluster owns the storage
// already, only High is raised; when another does, the answer is its owner and ErrForeign, or, with TakeOver, the new
// owner of the next generation, whose High is not below the old one. Among concurrent adopters exactly one wins. s is
// not guarded by Owned.
func Adopt(ctx context.Context, s Storage, a Adoption) (Owner, error) {
	if a.Cluster == "" {
		return Owner{}, fmt.Errorf("adopt storage: cluster id is empty: %w", ErrPermanent)
	}
	fresh := Owner{Format: ownerFormat, Storage: newID(), Cluster: a.Cluster, Generation: 1, High: a.High}
	_, _, err := readOwner(ctx, s)
	if errors.Is(err, ErrNoOwner) {
		err = writeOwner(ctx, s, fresh, Condition{})
		if err == nil {
			return fresh, nil
		}
	}
	if err != nil && !errors.Is(err, ErrExists) { // it exists: somebody was faster, or the own answer was lost
		return Owner{}, fmt.Errorf("adopt storage: %w", err)
	}
	o, err := update(ctx, s, func(o *Owner) error {
		if o.Cluster != a.Cluster {
			if !a.TakeOver {
				return foreign(*o)
			}
			o.Cluster, o.Generation = a.Cluster, o.Generation+1
		}
		o.High = max(o.High, a.High)
		return nil
	})
	if err != nil {
		return o, fmt.Errorf("adopt storage: %w", err)
	}
	return o, nil
}

// CheckOwner reads the owner object. It is an error when there is none (ErrNoOwner), when it names another cluster
// (ErrForeign, the owner is returned too) or when it cannot be read as one (ErrPermanent).
func CheckOwner(ctx context.Context, s Storage, cluster string) (Owner, error) {
	o, _, err := readOwner(ctx, s)
	if err == nil && o.Cluster != cluster {
		err = foreign(o)
	}
	if err != nil {
		return o, fmt.Errorf("check owner: %w", err)
	}
	return o, nil
}

// RaiseHigh raises the highest number in the owner object to at least high, by compare-and-set, and returns what is
// there afterwards. Nothing is written when it is high enough. Errors as CheckOwner; ErrStale after many lost races.
func RaiseHigh(ctx context.Context, s Storage, cluster string, high uint64) (Owner, error) {
	o, err := update(ctx, s, func(o *Owner) error {
		if o.Cluster != cluster {
			return foreign(*o)
		}
		o.High = max(o.High, high)
		return nil
	})
	if err != nil {
		return o, fmt.Errorf("raise highest number to %d: %w", high, err)
	}
	return o, nil
}

// CheckHigh compares the highest number of an owner object with the highest that the group has given out, or announced:
// ErrAhead when the storage has seen more. known must have been learnt after the object was read.
func CheckHigh(o Owner, known uint64) error {
	if o.High <= known {
		return nil
	}
	return fmt.Errorf("%w: it has seen number %d, the group has given out none above %d", ErrAhead, o.High, known)
}

// update applies change to the owner object until no other writer comes between. An unchanged owner is not written.
func update(ctx context.Context, s Storage, change func(*Owner) error) (Owner, error) {
	var err error
	for range ownerTries {
		o, version, readErr := readOwner(ctx, s)
		if readErr != nil {
			return Owner{}, readErr
		}
		before := o
		if err := change(&o); err != nil || o == before {
			return o, err
		}
		err = writeOwner(ctx, s, o, Condition{Version: version})
		if err == nil {
			return o, nil
		}
		if !errors.Is(err, ErrStale) {
			return Owner{}, err
		}
	}
	return Owner{}, err
}

func readOwner(ctx context.Context, s Storage) (Owner, string, error) {
	r, info, err := s.Get(ctx, OwnerName)
	if errors.Is(err, ErrNotFound) {
		return Owner{}, "", ErrNoOwner
	}
	if err != nil {
		return Owner{}, "", err // it names the object
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, ownerMaxSize+1))
	if err != nil {
		return Owner{}, "", fmt.Errorf("read %s: %w", OwnerName, err)
	}
	var o Owner
	if err := json.Unmarshal(b, &o); err != nil || len(b) > ownerMaxSize || o.Cluster == "" || o.Storage == "" {
		return Owner{}, "", fmt.Errorf("%s is not an owner object: %w", OwnerName, ErrPermanent)
	}
	if o.Format != ownerFormat {
		return Owner{}, "", fmt.Errorf("%s has format %d, this program knows %d: %w", OwnerName, o.Format, ownerFormat, ErrPermanent)
	}
	return o, info.Version, nil
}

func writeOwner(ctx context.Context, s Storage, o Owner, c Condition) error {
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	if _, err := s.Put(ctx, OwnerName, Bytes(append(b, '\n')), c); err != nil {
		return fmt.Errorf("write %s: %w", OwnerName, err)
	}
	return nil
}

func foreign(o Owner) error {
	return fmt.Errorf("%w: %s (storage %s, generation %d)", ErrForeign, o.Cluster, o.Storage, o.Generation)
}

// newID returns 128 random bits in hex.
func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)
}
