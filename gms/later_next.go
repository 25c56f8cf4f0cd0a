//go:build fencepost_next

package gms

import (
	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// later gives the command of the version that this build stands for, as soon as it leads, whether the group has agreed on that
// version or not: it is not in the log before. What it did is logged.
func (l *leading) later() {
	done := false
	l.g.rep.read(func(m *state.Machine) { _, done = m.CacheGet(state.Rehearsed) })
	if done {
		return
	}
	l.acts.Go(func() {
		c := wire.Rehearse("rehearsed")
		c.Term = l.term
		results, _, err := l.submit(l.ctx, []*wire.Command{c})
		if err == nil {
			l.g.log.Info("gms: the later command was given", "code", results[0].GetCode().String(), "protocol", l.g.Protocol())
		}
	})
}
