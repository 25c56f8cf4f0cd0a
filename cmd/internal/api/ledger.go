package api

import "context"

// PathLedger is the path of the group's ledger.
const PathLedger = "/api/v1/ledger"

// Kinds of ledgers.
const (
	LedgerEmbedded = "embedded" // in the group's own state
	LedgerPostgres = "postgres" // in a database
)

// Ledger is the group's ledger, as the node that answers reaches it.
type Ledger struct {
	Kind       string `json:"kind"`                 // that the group uses; empty: none yet
	ID         string `json:"id,omitempty"`         // of one in a database
	Node       string `json:"node"`                 // that answers
	Configured string `json:"configured"`           // kind that its file names
	Found      string `json:"found,omitempty"`      // id of the ledger in the database that its file names
	Owner      string `json:"owner,omitempty"`      // id of the group that this belongs to
	Generation int64  `json:"generation,omitempty"` // of it
	Mark       uint64 `json:"mark,omitempty"`       // highest token whose result it holds
	GroupMark  uint64 `json:"group_mark,omitempty"` // of which the group knows
	Frozen     bool   `json:"frozen"`
	Problem    string `json:"problem,omitempty"` // why nobody works with it, or this node does not
	Hint       string `json:"hint,omitempty"`
}

// What can be decided about a ledger.
const (
	LedgerReconcile = "reconcile" // the group's own one, frozen: open it again
	LedgerAdopt     = "adopt"     // another group's, or another of the group: use it from now on
	LedgerInit      = "init"      // there is none: begin one
)

// PlanLedger asks what a decision would change.
type PlanLedger struct {
	Do string `json:"do"` // reconcile, adopt or init
}

// LedgerPlan is what a decision changes, or has changed.
type LedgerPlan struct {
	Do      string          `json:"do"`
	Ledger  Ledger          `json:"ledger"`
	Backups []LedgerBackup  `json:"backups"`
	Tasks   []LedgerTask    `json:"tasks"`
	Away    []LedgerStorage `json:"away"` // what they may hold is left as the ledger has it
	Done    bool            `json:"done"`
}

// LedgerBackup is an entry that is not as the storages have it.
type LedgerBackup struct {
	ID       string   `json:"id"`
	Database string   `json:"database"`
	Was      string   `json:"was,omitempty"` // empty: the ledger does not know it
	Is       string   `json:"is"`
	Storages []string `json:"storages"` // that hold a copy
	Why      string   `json:"why"`
}

// LedgerTask is a task that ends.
type LedgerTask struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Database string `json:"database"`
	Backup   string `json:"backup,omitempty"`
	Was      string `json:"was"`
	Is       string `json:"is"`
	Why      string `json:"why,omitempty"`
}

// LedgerStorage is a storage that could not be looked through.
type LedgerStorage struct {
	Storage string `json:"storage"`
	Problem string `json:"problem"`
}

// MoveLedger says where to: "embedded", or a reference (file:PATH, env:NAME, command:PROGRAM) to the connection of an empty
// database, which the node that answers follows.
type MoveLedger struct {
	To string `json:"to"`
}

// MovedLedger is what was moved, or copied.
type MovedLedger struct {
	From    string `json:"from"` // kind
	To      string `json:"to"`   // kind
	ID      string `json:"id,omitempty"`
	Tasks   int    `json:"tasks"`
	Backups int    `json:"backups"`
	Items   int    `json:"items"`
	InUse   bool   `json:"in_use"` // the group uses it from now on
}

// Ledger is the group's ledger, as the node reaches it.
func (c *Client) Ledger(ctx context.Context) (Ledger, error) { return Get[Ledger](ctx, c, PathLedger) }

// PlanLedger tells what a decision would change. It looks through all storages.
func (c *Client) PlanLedger(ctx context.Context, r PlanLedger) (LedgerPlan, error) {
	return postWithin[LedgerPlan](ctx, c, PathLedger+"/plan", r, storageWork)
}

// DecideLedger carries a decision out: reconcile, adopt or init. It looks through all storages.
func (c *Client) DecideLedger(ctx context.Context, do string) (LedgerPlan, error) {
	return postWithin[LedgerPlan](ctx, c, PathLedger+"/"+do, struct{}{}, storageWork)
}

// MoveLedger has the group keep its ledger elsewhere.
func (c *Client) MoveLedger(ctx context.Context, r MoveLedger) (MovedLedger, error) {
	return postWithin[MovedLedger](ctx, c, PathLedger+"/move", r, storageWork)
}

// CopyLedger copies the ledger, and changes nothing of which one the group uses.
func (c *Client) CopyLedger(ctx context.Context, r MoveLedger) (MovedLedger, error) {
	return postWithin[MovedLedger](ctx, c, PathLedger+"/copy", r, storageWork)
}
