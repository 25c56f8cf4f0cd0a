package gms

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

// errorOf translates a refusal of the log, once, here.
func (g *Group) errorOf(what string, r *wire.Result) error {
	var kind error
	switch r.GetCode() {
	case wire.Code_CODE_OK, wire.Code_CODE_NO_CHANGE, wire.Code_CODE_QUEUED:
		return nil
	case wire.Code_CODE_NOT_FORMED:
		kind = ErrNoQuorum
	case wire.Code_CODE_RUN_NOT_OPEN:
		kind = ErrRunClosed
	case wire.Code_CODE_STALE:
		kind = ErrUnknown
	case wire.Code_CODE_NAME_TAKEN:
		kind = ErrNameTaken
	case wire.Code_CODE_OTHER_HOME:
		kind = ErrOtherHome
	case wire.Code_CODE_NOT_APPOINTED:
		kind = signals.ErrNotAppointed
	case wire.Code_CODE_WORK_LEFT:
		kind = signals.ErrWorkLeft
	case wire.Code_CODE_NOT_HOLDER:
		kind = ErrNotHolder
	case wire.Code_CODE_BUSY:
		return fmt.Errorf("%s: %w", what, g.holderError(r.GetHolder()))
	case wire.Code_CODE_CONDITION_FAILED:
		kind = ErrConflict
	case wire.Code_CODE_FENCED:
		kind = ErrFenced
	case wire.Code_CODE_TOO_LARGE:
		kind = ErrTooLarge
	case wire.Code_CODE_NOT_FOUND:
		kind = ErrNotFound
	case wire.Code_CODE_FORGOTTEN:
		kind = ErrForgotten
	case wire.Code_CODE_PROTOCOL:
		kind = ErrProtocol
	case wire.Code_CODE_QUARANTINED:
		kind = ErrQuarantined
	default:
		kind = errors.New("refused")
	}
	if r.GetDetail() == "" {
		return fmt.Errorf("%s: %w", what, kind)
	}
	return fmt.Errorf("%s: %w: %s", what, kind, r.GetDetail())
}

func (g *Group) holderError(holder []byte) error {
	e := &HolderError{Run: hexID(holder)}
	if id, ok := state.RunIDOf(holder); ok {
		g.rep.read(func(m *state.Machine) {
			if run, ok := m.Run(id); ok {
				e.Node = run.Node()
			}
		})
	}
	return e
}

// ask gets a command of this node's run decided, and refuses by itself when there is no run.
func (g *Group) ask(ctx context.Context, what string, cmd *wire.Command) (*wire.Result, error) {
	s := g.standingNow()
	if s == nil {
		return nil, fmt.Errorf("%s: %w", what, ErrNoQuorum)
	}
	cmd.Run = s.run[:]
	return g.decided(ctx, what, cmd)
}

// decided gets a command decided and translates the answer.
func (g *Group) decided(ctx context.Context, what string, cmd *wire.Command) (*wire.Result, error) {
	r, err := g.commands.do(ctx, cmd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return r, g.errorOf(what, r)
}

// caughtUp waits until this node's replica has applied a position, so that what was just decided can be read here.
func (g *Group) caughtUp(ctx context.Context, position uint64) error {
	return g.rep.await(ctx, func(m *state.Machine) bool { return m.Position() >= position })
}
