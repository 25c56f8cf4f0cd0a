package postgres

import (
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/ledgertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, newLedger)
}

func newLedger(t *testing.T) (ledger.Ledger, ledgertest.Group) {
	b := open(t)
	return b.led, b.group
}
