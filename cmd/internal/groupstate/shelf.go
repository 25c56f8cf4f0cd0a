package groupstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// Keep is how many objects stay in a storage.
const Keep = 30

// digits of a token in a name: the order of names is that of tokens.
const digits = 20

// Name is what the state that was made under a token is called.
func Name(token uint64) string {
	return fmt.Sprintf("%s/%0*d", storage.GroupFolder, digits, token)
}

// TokenOf is the token in a name; false for a name that Name has not made.
func TokenOf(name string) (token uint64, ok bool) {
	text, ok := strings.CutPrefix(name, storage.GroupFolder+"/")
	token, err := strconv.ParseUint(text, 10, 64)
	return token, ok && err == nil && Name(token) == name
}

// Stored is an object as a listing shows it.
type Stored struct {
	Name  string    `json:"name"`
	Token uint64    `json:"token"`
	Bytes int64     `json:"bytes"`
	At    time.Time `json:"at"` // by the storage's clock
}

// List are the objects of a storage, newest first.
func List(ctx context.Context, s storage.Storage) ([]Stored, error) {
	var list []Stored
	for info, err := range s.List(ctx, storage.GroupFolder) {
		if err != nil {
			return nil, fmt.Errorf("list the group's states: %w", err)
		}
		if token, ok := TokenOf(info.Name); ok {
			list = append(list, Stored{info.Name, token, info.Size, info.Modified})
		}
	}
	slices.Reverse(list)
	return list, nil
}

// Read reads an object whole.
func Read(ctx context.Context, s storage.Storage, name string) (Sealed, error) {
	r, _, err := s.Get(ctx, name)
	if err != nil {
		return Sealed{}, fmt.Errorf("read the group's state: %w", err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxObject+1))
	if err != nil {
		return Sealed{}, fmt.Errorf("read the group's state %s: %w", name, err)
	}
	return Parse(name, text)
}

// Prune removes all but the newest Keep objects. What the storage locks stays, and all of one that lets nothing be removed.
func Prune(ctx context.Context, s storage.Storage, now time.Time) error {
	if storage.Keeps(ctx, s) {
		return nil
	}
	list, err := List(ctx, s)
	if err != nil {
		return err
	}
	var errs []error
	for _, old := range list[min(len(list), Keep):] {
		until, err := storage.LockedUntil(ctx, s, old.Name)
		if err == nil && !until.After(now) {
			err = s.Delete(ctx, old.Name)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("remove old states of the group: %w", errors.Join(errs...))
	}
	return nil
}
