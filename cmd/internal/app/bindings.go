package app

import (
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/admin"
)

// bindings are those of the group's settings, as this node knows them.
type bindings struct{ a *App }

// Bound implements admin.Bindings.
func (b bindings) Bound(user string) (list []admin.Bound) {
	for _, x := range b.a.outfitNow().state.Settings.Bindings {
		if x.User == user {
			list = append(list, admin.Bound{Labels: x.Labels, Source: slices.Contains(x.As, "source"), Target: slices.Contains(x.As, "target")})
		}
	}
	return list
}

// LabelsOf implements admin.Bindings.
func (b bindings) LabelsOf(database string) []string {
	for _, d := range b.a.outfitNow().cfg.Databases {
		if d.Name == database {
			return d.Labels
		}
	}
	return nil
}
