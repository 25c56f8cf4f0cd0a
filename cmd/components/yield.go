package components

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/signals"
)

// YieldComponent is the component whose messages ask a member to give a claim of its back.
const YieldComponent = "claims"

// Yield asks the holder of a claim to have the work under it end, and then to give the claim back.
type Yield struct {
	Component  string `json:"component"`  // of the claim
	Item       string `json:"item"`       // its item
	Token      uint64 `json:"token"`      // its token: no other claim on the item is meant
	Quarantine bool   `json:"quarantine"` // the item is set aside when the claim ends, until an operator frees it
}

// hearWithin bounds what is done about one message; whoever sent it asks again.
const hearWithin = 5 * time.Second

// HearYield is the action of a message of YieldComponent. Errors: one that cannot be read, and those of Yield.
func (j *Joint) HearYield(ctx context.Context, s signals.Signal) error {
	m, ok := s.(*signals.Message)
	if !ok {
		return nil
	}
	var ask Yield
	if err := json.Unmarshal(m.Payload(), &ask); err != nil {
		return fmt.Errorf("read what is asked about a claim: %w", err)
	}
	j.cfg.Logger.InfoContext(ctx, "components: asked to give a claim back", "by", m.Facts().Member.Node, "component", ask.Component, "item", ask.Item, "token", ask.Token)
	ctx, cancel := context.WithTimeout(ctx, hearWithin)
	defer cancel()
	return j.Yield(ctx, ask)
}

// Yield has the work under a claim of this node end; its runner then gives the claim back. A claim that nothing works
// under is given back here, and one that is not this run's is left alone. Its errors are those of gms.Group.EndClaim.
func (j *Joint) Yield(ctx context.Context, ask Yield) error {
	c, ok := j.cfg.Group.ClaimOn(ask.Component, ask.Item)
	_, self := j.cfg.Group.Self()
	if !ok || c.Token != ask.Token || c.Run != self || c.Orphan || c.Adopted || c.Quarantined {
		return nil
	}
	how := signals.Abandon
	if ask.Quarantine {
		how = signals.Quarantine
		j.setAside(ask.Token)
	}
	if r := j.cfg.Runner(ask.Component); r != nil && r.Yield(ask.Token) {
		return nil
	}
	err := j.cfg.Group.EndClaim(ctx, c.Claim, how)
	if errors.Is(err, gms.ErrNotFound) || errors.Is(err, gms.ErrNotHolder) {
		err = nil
	}
	if err == nil {
		j.forget(ask.Token)
	}
	return err
}

// setAside has the item of a claim be quarantined when the claim ends, whatever became of the work.
func (j *Joint) setAside(token uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.aside[token] = true
}

func (j *Joint) forget(token uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.aside, token)
}
