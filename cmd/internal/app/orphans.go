package app

import (
	"slices"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/component"
)

// adopts tells whether what a dead run was at work on is worked on again at once by its recoverer, for one of the host's
// components.
func (a *App) adopts(name string) bool {
	return slices.ContainsFunc(a.cfg.Components, func(c configs.Component) bool { return c.Name == name && c.Orphans == configs.OrphansAdopt })
}

// runnerOf is this node's runner of a component; nil when there is none, or not yet.
func (a *App) runnerOf(name string) *component.Runner {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		return nil
	}
	return a.work.runners[name]
}
