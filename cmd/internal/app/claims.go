package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/components"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

const (
	endWithin = 20 * time.Second // of a request that ends a claim and does not say how long it waits
	endMost   = time.Hour        // that one may wait
	askAgain  = 5 * time.Second  // between two messages to a member that still holds the claim
)

// Claims implements admin.Autonomous.
func (j jobs) Claims(ctx context.Context) ([]api.Claim, error) {
	people(j).fresh(ctx)
	list := []api.Claim{}
	for _, c := range j.a.group.Claims() {
		list = append(list, claimShown(c))
	}
	slices.SortFunc(list, func(a, b api.Claim) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Item, b.Item))
	})
	return list, nil
}

func claimShown(c gms.ClaimState) api.Claim {
	out := api.Claim{
		Component: c.Component, Item: c.Item, RoundTrip: int(c.RoundTrip), Token: c.Token, Node: c.Node, Run: c.Run, State: "held",
		Orphanings: int(c.Orphanings), HolderLives: !c.Orphan && !c.Quarantined,
	}
	switch {
	case c.Quarantined:
		out.State = "quarantined"
	case c.Orphan:
		out.State = "orphan"
	case c.Adopted:
		out.State = "adopted"
	}
	return out
}

// EndClaim implements admin.Autonomous. The item gets no second worker by it: who lives and works under the claim is asked to
// end, and gives the claim back when the work is proven to have ended; what a dead run claimed is settled by its recovery
// first, under the fence. It waits for that, not for ever: CodeBusy says that it is under way.
func (j jobs) EndClaim(ctx context.Context, r api.ClaimName, quarantine bool) (api.Claim, error) {
	within := cmp.Or(time.Duration(r.WithinMS)*time.Millisecond, endWithin)
	if r.WithinMS < 0 || r.WithinMS > endMost.Milliseconds() {
		return api.Claim{}, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("within_ms is %d: want 1 to %d", r.WithinMS, endMost.Milliseconds())}
	}
	people(j).fresh(ctx)
	named, ok := j.a.group.ClaimOn(r.Component, r.Item)
	if !ok || named.Token != r.Token {
		return api.Claim{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("nobody claims %s of %s with token %d", r.Item, r.Component, r.Token), Hint: "see fencepost claim ls: it may have moved"}
	}
	over := time.NewTimer(within)
	defer over.Stop()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	asked := uint64(0) // the token whose holder was asked last
	for {
		changed := j.a.group.Cache().Changed()
		c, held := j.a.group.ClaimOn(r.Component, r.Item)
		step := nextStep(r.Token, quarantine, c, held)
		switch step {
		case claimEnded:
			shown := claimShown(named)
			shown.State, shown.HolderLives = "free", false
			return shown, nil
		case claimAside:
			return claimShown(c), nil
		case claimSettles:
			if err := j.a.stranded(r.Component, c); err != nil {
				return api.Claim{}, err
			}
		case claimAsk:
			if asked != c.Token {
				asked = c.Token
				if err := j.a.askYield(ctx, c, quarantine); err != nil {
					return api.Claim{}, err
				}
			}
		default:
			if err := j.a.actOn(ctx, step, r); err != nil {
				return api.Claim{}, err
			}
			continue
		}
		select {
		case <-changed:
		case <-again.C:
			asked = 0
		case <-over.C:
			return api.Claim{}, j.a.stillHeld(c)
		case <-ctx.Done():
			return api.Claim{}, context.Cause(ctx)
		}
	}
}

// claimStep is what is to be done next about a claim that somebody wants to have ended.
type claimStep int

const (
	claimEnded   claimStep = iota // nothing: the claim that was named is no more
	claimAside                    // nothing: the item is set aside
	claimSettles                  // wait for the recovery of the run that died with it
	claimAsk                      // have its holder end the work, and wait
	claimFree                     // let the quarantined item be claimed again
	claimTake                     // claim the item, which nobody holds now, and set it aside
)

// nextStep decides, from what the log has, about the claim of that token. It is pure.
func nextStep(token uint64, quarantine bool, c gms.ClaimState, held bool) claimStep {
	switch {
	case held && c.Quarantined && quarantine:
		return claimAside
	case held && c.Quarantined && c.Token == token:
		return claimFree
	case !held && quarantine:
		return claimTake
	case !held, c.Token != token && !quarantine:
		return claimEnded
	case c.Orphan, c.Adopted:
		return claimSettles
	}
	return claimAsk
}

// actOn takes a step that is this node's to take. That somebody was quicker is no error: the next look shows it. It returns
// when this node's own replica shows what was done: an older one would have it ask itself to end its own claim.
func (a *App) actOn(ctx context.Context, step claimStep, r api.ClaimName) error {
	err := a.step(ctx, step, r)
	for _, quicker := range []error{gms.ErrBusy, gms.ErrQuarantined, gms.ErrNotFound, gms.ErrNotHolder} {
		if errors.Is(err, quicker) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return a.group.Sync(ctx)
}

func (a *App) step(ctx context.Context, step claimStep, r api.ClaimName) error {
	if step == claimFree {
		return a.group.FreeItem(ctx, r.Component, r.Item)
	}
	c, err := a.group.Claim(ctx, r.Component, r.Item, 1)
	if err != nil {
		return err
	}
	return a.group.EndClaim(ctx, c, signals.Quarantine)
}

// stranded is why the recovery that has a claim does not go on by itself; nil when it does.
func (a *App) stranded(component string, c gms.ClaimState) error {
	recoveries, _ := a.group.Recoveries()
	for _, r := range recoveries {
		if r.Component != component || r.Run != c.Run && !c.Adopted || r.State != api.FenceParked && r.State != api.FenceWaiting {
			continue
		}
		return &api.Error{
			Code: api.CodeNeedsOperator, Message: fmt.Sprintf("the claim is that of a dead run of %s, whose recovery is %s", r.Node, r.State),
			Hint: fmt.Sprintf("fencepost recoveries retry %s %s has it tried again, drop frees what the run had claimed", component, r.Run[:8]),
		}
	}
	return nil
}

// askYield asks the holder of a claim to have its work end. This node asks itself without a message.
func (a *App) askYield(ctx context.Context, c gms.ClaimState, quarantine bool) error {
	ask := components.Yield{Component: c.Component, Item: c.Item, Token: c.Token, Quarantine: quarantine}
	if _, self := a.group.Self(); c.Run == self {
		if b := a.bridge(); b != nil {
			return b.Yield(ctx, ask)
		}
		return nil
	}
	payload, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	err = a.group.Send(ctx, components.YieldComponent, payload, c.Node)
	if errors.Is(err, gms.ErrUnknownMember) || errors.Is(err, gms.ErrUnknown) {
		return nil // it dies just now, or the message comes late: what it holds is looked at again
	}
	return err
}

// hearYield is the action of such a message.
func (a *App) hearYield(ctx context.Context, s signals.Signal) error {
	if b := a.bridge(); b != nil {
		return b.HearYield(ctx, s)
	}
	return nil // it has claimed nothing yet
}

// bridge is nil until there is work.
func (a *App) bridge() *bridge {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		return nil
	}
	return a.work.bridge
}

// stillHeld says what a claim waits for that has not ended in time.
func (a *App) stillHeld(c gms.ClaimState) error {
	if c.Orphan || c.Adopted {
		return &api.Error{Code: api.CodeBusy, Message: "the claim is that of a dead run, and its recovery goes on", Hint: "see fencepost recoveries"}
	}
	a.mu.Lock()
	w := a.work
	a.mu.Unlock()
	if w != nil && w.runners[c.Component] != nil {
		for _, stuck := range w.runners[c.Component].Stuck() {
			if stuck.Token == c.Token {
				return &api.Error{Code: api.CodeNotStopped, Message: "the work under the claim was ended by force, and is not proven to have stopped", Hint: "stop what it started by hand; the claim is given back as soon as it has ended"}
			}
		}
	}
	return &api.Error{Code: api.CodeBusy, Message: fmt.Sprintf("node %s was asked to end its work on %s, and still holds the claim", c.Node, c.Item), Hint: "it gives the claim back when the work has ended"}
}
