package gossip

import (
	"log/slog"

	"github.com/hashicorp/memberlist"
)

// conflictDelegate raises an alarm when two members have one name: names hold a run, so that somebody has copied one.
type conflictDelegate struct {
	log *slog.Logger
}

var _ memberlist.ConflictDelegate = (*conflictDelegate)(nil)

func (d *conflictDelegate) NotifyConflict(existing, other *memberlist.Node) {
	d.log.Error("two members have the same name; the newcomer is ignored",
		"name", existing.Name, "address", existing.Address(), "newcomer", other.Address())
}
