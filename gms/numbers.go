package gms

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Numbers tell how far a group has come.
type Numbers struct {
	Base     uint64 // positions are above it, by the index of their entry
	Position uint64 // of the last entry
	Token    uint64 // last one that was granted
}

// High is the highest number that the group has given out.
func (n Numbers) High() uint64 { return max(n.Position, n.Token) }

// MaxBase is the highest base that a group takes: enough room above it that no base leaves a group without numbers.
const MaxBase = state.MaxBase

// Numbers are the group's, confirmed by a majority after the call began. ErrNoQuorum.
func (g *Group) Numbers(ctx context.Context) (Numbers, error) {
	if err := g.Sync(ctx); err != nil {
		return Numbers{}, err
	}
	return g.numbers(), nil
}

func (g *Group) numbers() (n Numbers) {
	g.rep.read(func(m *state.Machine) { n = Numbers{Base: m.Base(), Position: m.Position(), Token: m.Counter()} })
	return n
}

// rebaseTries bounds how often numbers that were given out meanwhile are outrun: they grow by far less than the headroom.
const rebaseTries = 8

// rebaseHeadroom is how far above everything known a new base lies, so that what is granted while it is being agreed stays
// below it.
const rebaseHeadroom = 1 << 20

// Rebase has all positions and tokens go on above everything that is known to have been given out, by whomever: above the
// group's own numbers, the present time in microseconds, what Config.Floor finds, and above itself. It is what a person asks
// for after something has seen a higher number than this group has given out. Nothing that was granted before loses its
// standing. It blocks until that is decided, or ctx ends: ErrTooLarge for a number that leaves too little room, ErrNoQuorum,
// ErrUnknown.
func (g *Group) Rebase(ctx context.Context, above uint64, reason string) (Numbers, error) {
	const what = "raise the group's numbers"
	if above >= MaxBase {
		return Numbers{}, withHint(fmt.Errorf("%s above %d: %w: the highest base is %d", what, above, ErrTooLarge, uint64(MaxBase)),
			"no group of this program gives out such numbers: see where it comes from")
	}
	for range rebaseTries {
		if err := g.Sync(ctx); err != nil {
			return Numbers{}, fmt.Errorf("%s: %w", what, err)
		}
		base, err := g.floor(ctx)
		if err != nil {
			return Numbers{}, fmt.Errorf("%s: %w", what, err)
		}
		now := g.numbers()
		base = max(base, above, now.High()+rebaseHeadroom)
		r, err := g.commands.do(ctx, &wire.Command{Op: &wire.Command_Rebase{Rebase: &wire.Rebase{Base: base + 1, Reason: reason}}})
		switch {
		case err != nil:
			return Numbers{}, fmt.Errorf("%s: %w", what, err)
		case r.GetCode() == wire.Code_CODE_STALE:
			continue // more was given out meanwhile
		case r.GetCode() == wire.Code_CODE_INVALID:
			return Numbers{}, fmt.Errorf("%s above %d: %w: %s", what, base, ErrTooLarge, r.GetDetail())
		}
		if err := g.errorOf(what, r); err != nil {
			return Numbers{}, err
		}
		return g.Numbers(ctx)
	}
	return Numbers{}, fmt.Errorf("%s: %w", what, errors.New("they grow faster than can be outrun"))
}

// floor is the highest number that is known outside of the log: the present time in microseconds, and what Config.Floor
// finds.
func (g *Group) floor(ctx context.Context) (uint64, error) {
	if mutant == "base" {
		return 0, nil
	}
	base := uint64(time.Now().UnixMicro())
	if g.cfg.Floor == nil {
		return base, nil
	}
	floor, err := g.cfg.Floor(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for the highest number given out so far: %w", err)
	}
	return max(base, floor), nil
}
