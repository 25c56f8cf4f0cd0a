package app

import (
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// certificateUntil is when this node's certificate expires; nil without one.
func (a *App) certificateUntil() *time.Time {
	until, ok := a.group.CertificateUntil()
	if !ok {
		return nil
	}
	return optional(until.UTC())
}

// distrusted is why the certificates of other nodes do not count, by node.
func (a *App) distrusted() map[string]string {
	out := make(map[string]string)
	for node, err := range a.group.Distrusted() {
		out[node] = err.Error()
	}
	return out
}

// refused are the nodes that would be members, if their certificates counted.
func refused(members []api.Member, distrusted map[string]string) (list []api.Member) {
	for _, node := range slices.Sorted(maps.Keys(distrusted)) {
		if !slices.ContainsFunc(members, func(m api.Member) bool { return m.Node == node }) {
			list = append(list, api.Member{Node: node, State: api.MemberRefused, Components: []string{}, Problem: distrusted[node]})
		}
	}
	return list
}
