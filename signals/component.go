package signals

import (
	"errors"
	"fmt"
	"time"
)

// Component is what a member registers to be appointed to recoveries of a component.
type Component struct {
	Name      string        // 1 to 64 bytes, the same on all members
	Selector  Selector      // empty: the group's
	Exclusion Exclusion     // never empty once registered
	Progress  time.Duration // 0: the action promises no progress
}

// Selector orders the candidates of a recovery. All members must register a component with the same one.
type Selector string

// Selectors.
const (
	Rendezvous Selector = "rendezvous" // spreads the components of a dead node
	Successor  Selector = "successor"  // the next in join order
)

// Exclusion says how former holders are kept out.
type Exclusion string

// Exclusions.
const (
	// ExclusionToken: the resource checks tokens, so a recovery starts at once.
	ExclusionToken Exclusion = "token"
	// ExclusionLease: the resource cannot check, so Acquire waits until every former holder's lease has run out.
	ExclusionLease Exclusion = "lease"
)

// ComponentOption changes a component as it is registered.
type ComponentOption func(*Component)

// WithExclusion says how former holders are kept out; default ExclusionToken.
func WithExclusion(x Exclusion) ComponentOption { return func(c *Component) { c.Exclusion = x } }

// WithProgress promises that the action calls Fence.Progress at least once per d, counted from Acquire. If it does not,
// its fence is not renewed, is lost, and the recovery moves on. d must be positive; without the option an action may
// take any time.
func WithProgress(d time.Duration) ComponentOption {
	return func(c *Component) {
		c.Progress = d
		if d <= 0 {
			c.Progress = -1 // refused by newComponent
		}
	}
}

// WithSelector chooses the order of candidates; default the group's.
func WithSelector(s Selector) ComponentOption { return func(c *Component) { c.Selector = s } }

const maxComponentName = 64

func newComponent(name string, opts []ComponentOption) (Component, error) {
	c := Component{Name: name, Exclusion: ExclusionToken}
	for _, opt := range opts {
		opt(&c)
	}
	switch {
	case name == "":
		return Component{}, errors.New("component has no name")
	case len(name) > maxComponentName:
		return Component{}, fmt.Errorf("component name has %d bytes, at most %d are allowed", len(name), maxComponentName)
	case c.Exclusion != ExclusionToken && c.Exclusion != ExclusionLease:
		return Component{}, fmt.Errorf("component %s: unknown exclusion %q", name, c.Exclusion)
	case c.Selector != "" && c.Selector != Rendezvous && c.Selector != Successor:
		return Component{}, fmt.Errorf("component %s: unknown selector %q", name, c.Selector)
	case c.Progress < 0:
		return Component{}, fmt.Errorf("component %s: progress interval must be positive", name)
	}
	return c, nil
}
