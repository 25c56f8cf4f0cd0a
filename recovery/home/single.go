package home

import (
	"context"
	"errors"
)

// Single is an environment of one process, which is keeper and holds the only write seat.
type Single struct {
	*Seat
	keeper *Keeper
}

// Open is the whole of the first architecture: take the environment or answer ErrBusy, recover what an earlier process left,
// seal, and join. Errors are those of Take, Keeper.Recover and Join.
func Open(ctx context.Context, cfg Config, o JoinOptions) (*Single, error) {
	k, err := Take(cfg)
	if err != nil {
		return nil, err
	}
	if _, err := k.Recover(ctx, "it was open when a new process came"); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	seat, err := Join(ctx, cfg, o)
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return &Single{Seat: seat, keeper: k}, nil
}

// Recover begins a new generation in place after a failure: it leaves the seat, recovers and joins again. The caller has
// thrown away all that it held of the former one.
func (s *Single) Recover(ctx context.Context, cause string) error {
	rec := s.record
	_ = s.Fail(cause) // an earlier cause wins
	if err := s.Leave(""); err != nil {
		return err
	}
	if _, err := s.keeper.Recover(ctx, cause); err != nil {
		return err
	}
	seat, err := Join(ctx, s.keeper.cfg, JoinOptions{ReadOnly: rec.ReadOnly, Label: rec.Label, Run: rec.Ident.Run})
	if err != nil {
		return err
	}
	s.Seat = seat
	return nil
}

// Close leaves and ends the generation in order, so that the next Open has nothing to recover from. Its errors say
// what could not be ended in order.
func (s *Single) Close() error {
	return errors.Join(s.Leave(""), s.keeper.Retire(context.Background()), s.keeper.Close())
}
