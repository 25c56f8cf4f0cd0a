package gmstest

import (
	"encoding/hex"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Fact is one effect of an entry of the group's log, for tests that look at the order in which things really happened.
type Fact struct {
	Index uint64   // of the entry
	Kind  FactKind // which of the other fields mean something
	Run   string   // of locks and claims: the holder's
	Token uint64   // of locks and claims

	Lock            string // name
	Component, Item string // of claims
	Key             string // of the state cache, below Component
}

// FactKind says what a Fact is about.
type FactKind int

// Kinds of facts.
const (
	LockGranted  FactKind = iota // a poll lock is held from here on
	LockFreed                    // unlocked, expired, or its holder's run closed
	ClaimGranted                 // somebody may work on the item
	ClaimAdopted                 // an orphan is its recoverer's
	ClaimEnded                   // the item is free, or quarantined
	CachePut                     // an entry of the state cache was written
)

// WithFacts has a function be told of each fact, once, in the order of the log. It is called under locks: it must return at
// once, and ask nothing of the world.
func WithFacts(see func(Fact)) Option {
	return func(o *options) { o.facts = append(o.facts, see) }
}

// tell passes on what an entry has changed.
func (o *observer) tell(index uint64, changes []state.Change) {
	if len(o.w.opts.facts) == 0 {
		return
	}
	for _, c := range changes {
		for _, f := range factsOf(c) {
			f.Index = index
			for _, see := range o.w.opts.facts {
				see(f)
			}
		}
	}
}

func factsOf(c state.Change) (list []Fact) {
	switch c := c.(type) {
	case state.LockGranted:
		return []Fact{{Kind: LockGranted, Lock: c.Name, Run: hex.EncodeToString(c.Run.Bytes()), Token: c.Token}}
	case state.LockFreed:
		return []Fact{{Kind: LockFreed, Lock: c.Name, Run: hex.EncodeToString(c.Run.Bytes()), Token: c.Token}}
	case state.ClaimGranted:
		return []Fact{claimFact(ClaimGranted, c.Claim)}
	case state.ClaimAdopted:
		return []Fact{claimFact(ClaimAdopted, c.Claim)}
	case state.ClaimEnded:
		return []Fact{claimFact(ClaimEnded, c.Claim)}
	case state.CacheChanged:
		for _, e := range c.Events {
			if !e.Deleted {
				list = append(list, Fact{Kind: CachePut, Component: e.Key.Component, Key: e.Key.Key})
			}
		}
	}
	return list
}

func claimFact(kind FactKind, c *wire.ClaimState) Fact {
	return Fact{Kind: kind, Component: c.GetComponent(), Item: c.GetItem(), Run: hex.EncodeToString(c.GetRun()), Token: c.GetToken()}
}
