package components

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/gms/protocol"
	"github.com/fencepost/fencepost/pipeline/ledger"
)

// Kinds of ledgers.
const (
	LedgerEmbedded = "embedded" // in the group's state cache
	LedgerPostgres = "postgres" // in a database
)

// Lineage is what a group keeps of the ledger that it uses, so that two nodes never work with two.
type Lineage struct {
	Format int    `json:"format"`           // 1; WriteLineage sets it
	Kind   string `json:"kind"`             // embedded | postgres
	Ledger string `json:"ledger,omitempty"` // id of one in a database
	Moving string `json:"moving,omitempty"` // where it is being moved: nobody works with it meanwhile
}

const lineageFormat = 1

func lineageKey() gms.Key { return ledgerKey("lineage") }

// ErrLedgerElsewhere: the group keeps its ledger elsewhere, or moves it. It comes together with ledger.ErrUnavailable: no task
// ends for it.
var ErrLedgerElsewhere = errors.New("the group keeps its ledger elsewhere")

// elsewhere says why the state cache is not the ledger of the group; nil when it is, or no kind was chosen yet.
func (l Lineage) elsewhere() error {
	switch {
	case l.Moving != "":
		return fmt.Errorf("%w: it is being moved to %s: %w", ErrLedgerElsewhere, l.Moving, ledger.ErrUnavailable)
	case l.Kind == LedgerPostgres:
		return fmt.Errorf("%w: in a database: %w", ErrLedgerElsewhere, ledger.ErrUnavailable)
	}
	return nil
}

// ReadLineage is what the group keeps, confirmed by a majority, and its version; the zero Lineage and version when nobody has
// opened a ledger yet. Errors: ledger.ErrUnavailable when no majority answers, or what a newer version wrote.
func ReadLineage(ctx context.Context, g *gms.Group) (Lineage, uint64, error) {
	e, err := g.Cache().Get(ctx, lineageKey())
	return lineageOf(e, err)
}

// LocalLineage is ReadLineage as this node knows it now. It does not block; its errors are that a newer version wrote it.
func LocalLineage(g *gms.Group) (Lineage, uint64, error) {
	e, err := g.Cache().GetLocal(lineageKey())
	return lineageOf(e, err)
}

func lineageOf(e gms.Entry, err error) (l Lineage, version uint64, _ error) {
	if errors.Is(err, gms.ErrNotFound) {
		return l, 0, nil
	}
	if err != nil {
		return l, 0, fmt.Errorf("read which ledger the group uses: %w: %w", ledger.ErrUnavailable, err)
	}
	if err := json.Unmarshal(e.Value, &l); err != nil {
		return l, 0, fmt.Errorf("read which ledger the group uses: %w", err)
	}
	if l.Format != lineageFormat {
		return l, 0, fmt.Errorf("which ledger the group uses is said in format %d, this program knows %d: a newer version wrote it", l.Format, lineageFormat)
	}
	return l, e.Version, nil
}

// WriteLineage has the group keep l in place of what has that version (0: nothing); gms.ErrConflict when something else is
// there; other errors as of gms.Cache.Commit.
func WriteLineage(ctx context.Context, g *gms.Group, l Lineage, version uint64) error {
	l.Format = lineageFormat
	value, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write which ledger the group uses: %w", err)
	}
	_, err = g.Cache().Commit(ctx, gms.Txn{
		Conditions: []gms.Condition{gms.VersionIs(lineageKey(), version)},
		Puts:       []gms.Put{{Key: lineageKey(), Value: value, Protocol: protocol.Needs(l)}},
	})
	if err != nil {
		return fmt.Errorf("write which ledger the group uses: %w", err)
	}
	return nil
}
