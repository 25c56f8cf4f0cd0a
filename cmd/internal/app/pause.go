package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/gms"
)

// pauseComponent is the component of the state cache under which it is kept which components are paused, for the whole
// group: pause/<component>.
const pauseComponent = "pause"

func pauseKey(name string) gms.Key { return gms.Key{Component: pauseComponent, Key: name} }

// paused tells whether a component is paused, as this node knows. It reads memory only.
func (a *App) paused(name string) bool {
	_, err := a.group.Cache().GetLocal(pauseKey(name))
	return err == nil
}

// pause has no member claim anything new for a component, or lets them again. What is claimed goes on.
func (a *App) pause(ctx context.Context, name string, on bool, by string) error {
	txn := gms.Txn{Deletes: []gms.Key{pauseKey(name)}}
	if on {
		txn = gms.Txn{Puts: []gms.Put{{Key: pauseKey(name), Value: []byte(by)}}}
	}
	_, err := a.group.Cache().Commit(ctx, txn)
	if err != nil && !errors.Is(err, gms.ErrNotFound) {
		return fmt.Errorf("pause %s: %w", name, err)
	}
	return nil
}
