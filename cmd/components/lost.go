package components

import (
	"context"
	"time"

	"github.com/fencepost/fencepost/signals"
)

// lostAfter is how long a claim of this run may go without anybody here working on it. A recovery hands what it adopted
// to the worker in much less.
const lostAfter = 30 * time.Second

// maxLost bounds what is noted; what is forgotten is only given back later.
const maxLost = 1000

// giveBackLost ends a claim that this very run holds and nobody here works on: a Release that took effect, but whose
// answer came too late for its recovery to go on, leaves what it adopted so, and a claim that could not be given back
// stays so. A component asks for an item only while it does not work on it. To end too much does no harm: whoever works
// under the claim is fenced then.
func (j *Joint) giveBackLost(ctx context.Context, component, item string) {
	c, held := j.cfg.Group.ClaimOn(component, item)
	if _, self := j.cfg.Group.Self(); !held || c.Run != self || c.Orphan || c.Adopted || c.Quarantined || !j.isLost(c.Token) {
		return
	}
	j.cfg.Logger.WarnContext(ctx, "components: nobody works on a claim of this node, giving it back", "component", component, "item", item, "token", c.Token)
	if err := j.End(ctx, ClaimOf(c.Claim), signals.Abandon); err != nil {
		j.cfg.Logger.WarnContext(ctx, "components: claim not given back", "component", component, "item", item, "error", err)
	}
}

// isLost notes that the claim was met without work, and tells whether that is so for long enough.
func (j *Joint) isLost(token uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	since, ok := j.lost[token]
	if !ok {
		if len(j.lost) >= maxLost {
			clear(j.lost)
		}
		j.lost[token] = time.Now()
		return false
	}
	if time.Since(since) < lostAfter {
		return false
	}
	delete(j.lost, token)
	return true
}
