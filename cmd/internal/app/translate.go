package app

import (
	"errors"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
	ledgerdb "github.com/fencepost/fencepost/pipeline/ledger/postgres"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// codes maps what the halves answer to what people and scripts branch on; the first match counts.
var codes = []struct {
	err  error
	code api.Code
	hint string
}{
	{ledger.ErrNotFound, api.CodeNotFound, ""},
	{ledger.ErrFinal, api.CodeConflict, ""},
	{ledger.ErrRefused, api.CodeConflict, ""},
	{embedded.ErrFull, api.CodeFailed, "delete backups that nobody needs, or keep the ledger in a database (ledger.dsn)"},
	{ledger.ErrExists, api.CodeConflict, ""},
	{ledgerdb.ErrChanged, api.CodeConflict, ""},
	{ledgerdb.ErrOccupied, api.CodeConflict, ""},
	{ledger.ErrAhead, api.CodeConflict, ledgerdb.Rebase},
	{storage.ErrAhead, api.CodeConflict, ledgerdb.Rebase},
	{gms.ErrTooLarge, api.CodeUsage, ""},
	{ledger.ErrUnavailable, api.CodeUnavailable, "see `fencepost status`; a majority of the voters must be reachable"},
	{source.ErrSuperseded, api.CodeConflict, ""},
	{source.ErrUnavailable, api.CodeUnavailable, ""},
	{gms.ErrNoQuorum, api.CodeUnavailable, "see `fencepost status`; a majority of the voters must be reachable"},
	{gms.ErrUnknown, api.CodeUnavailable, "it may have happened: look before you repeat it"},
	{gms.ErrRunClosed, api.CodeLeaseLost, "this node is opening a new run; repeat it"},
	{gms.ErrLeaseExpired, api.CodeLeaseLost, "this node cannot reach its group; ask another one"},
	{gms.ErrProtocol, api.CodeConflict, ""},
	{gms.ErrBusy, api.CodeBusy, ""},
	{gms.ErrNotFound, api.CodeNotFound, ""},
	{gms.ErrKeyInUse, api.CodeConflict, ""},
	{gms.ErrNotProven, api.CodeConflict, ""},
	{gms.ErrNotHolder, api.CodeConflict, "fencepost fences shows the present token"},
}

// translate is the one place where errors become words for people.
func translate(err error) *api.Error {
	var request *pipeline.RequestError
	if errors.As(err, &request) {
		code := api.CodeUsage
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			code = api.CodeNotFound
		case errors.Is(err, ledger.ErrFinal), errors.Is(err, ledger.ErrRefused):
			code = api.CodeConflict
		}
		return &api.Error{Code: code, Message: request.Error(), Hint: request.Hint}
	}
	if errors.Is(err, source.ErrTargetExists) { // in the words of the command, not those of the source
		return &api.Error{Code: api.CodeConflict, Message: err.Error(), Hint: offline.TargetHint}
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return &api.Error{Code: c.code, Message: err.Error(), Hint: HintOf(err, c.hint)}
		}
	}
	if misplaced(err) {
		err = storageHint(err) // it knows better than what only says that a storage is meant
	}
	if hint := HintOf(err, ""); hint != "" {
		return &api.Error{Code: api.CodeFailed, Message: err.Error(), Hint: hint}
	}
	return nil
}

// HintOf is the remedy that an error carries, or otherwise.
func HintOf(err error, otherwise string) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return otherwise
}
