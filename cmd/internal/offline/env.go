package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/recovery/home"
)

// EnvStatus is a node's environment as it looks from outside, EnvEvidence what is kept of a generation that failed.
type (
	EnvStatus   = home.Status
	EnvEvidence = home.Evidence
)

// What env commands say that is no plain failure; test with errors.Is.
var (
	ErrEnvBusy      = home.ErrBusy      // a warden keeps it
	ErrEnvNotProven = home.ErrNotProven // somebody is inside and cannot be ended
	ErrEnvNotSealed = home.ErrNotSealed // no generation is open
	ErrEnvNoRoom    = home.ErrNoRoom    // the disk is full
)

// Env is the environment of one node, which its warden sweeps.
type Env struct{ cfg home.Config }

// OpenEnv finds the environment by the node's home, or by its configuration file when dir is empty. It opens nothing; a home
// that was never watched has none, which is an error.
func OpenEnv(dir, config string) (Env, error) {
	if dir == "" {
		cfg, err := configs.Load(config)
		if err != nil {
			return Env{}, err
		}
		dir = cfg.Home
	}
	env := filepath.Join(dir, "env")
	if _, err := os.Stat(env); err != nil {
		return Env{}, fmt.Errorf("no warden has kept %s yet: %w", dir, err)
	}
	return Env{home.Config{Dir: env, Seats: 8}}, nil
}

// Status reads the state; on Linux it changes nothing.
func (e Env) Status() (EnvStatus, error) { return home.Look(e.cfg) }

// Verify says, one line each, what is not as it should be.
func (e Env) Verify() ([]string, error) { return home.Audit(e.cfg) }

// Evidence is what is kept of generations that failed, the newest first.
func (e Env) Evidence() ([]EnvEvidence, error) { return home.ReadEvidence(e.cfg) }

// Fail marks the open generation failed; the warden, if there is one, ends the node and starts it again.
func (e Env) Fail(cause string) error { return home.Fail(e.cfg, cause) }

// Drain proves that nobody is inside, killing who is; nobody can enter until Seal. ErrEnvBusy below a warden.
func (e Env) Drain(ctx context.Context) error {
	return e.keep(func(k *home.Keeper) error {
		d, err := k.Drain(ctx)
		if err != nil {
			return err
		}
		d.Release()
		return nil
	})
}

// Sweep drains, and removes the volatile part.
func (e Env) Sweep(ctx context.Context) error {
	return e.keep(func(k *home.Keeper) error {
		d, err := k.Drain(ctx)
		if err != nil {
			return err
		}
		defer d.Release()
		return d.Sweep()
	})
}

// Seal drains, sweeps and opens the next generation, which it returns. It also forgives recoveries that failed too often.
func (e Env) Seal(ctx context.Context) (gen uint64, err error) {
	err = e.keep(func(k *home.Keeper) error {
		gen, err = k.Recover(ctx, "an operator seals it anew")
		return err
	})
	return gen, err
}

// keep does what only a keeper may. The operator's word counts for more than the number of attempts.
func (e Env) keep(do func(*home.Keeper) error) error {
	k, err := home.Take(e.cfg)
	if err != nil {
		return err
	}
	return errors.Join(k.Pardon(), do(k), k.Close())
}
