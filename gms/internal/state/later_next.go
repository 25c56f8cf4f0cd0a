//go:build fencepost_next

package state

import "github.com/fencepost/fencepost/gms/internal/wire"

// Rehearsed is where the command of version 2 keeps its word.
var Rehearsed = CacheKey{Component: "rehearsal", Key: "word"}

func isLater(c *wire.Command) bool {
	_, ok := wire.Rehearsal(c)
	return ok
}

func (m *Machine) executeLater(run RunID, c *wire.Command) *wire.Result {
	word, _ := wire.Rehearsal(c)
	return m.cacheTxn(run, &wire.CacheTxn{Puts: []*wire.CachePut{{Key: Rehearsed.wire(), Value: []byte(word)}}})
}
