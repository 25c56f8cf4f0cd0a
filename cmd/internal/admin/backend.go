package admin

import (
	"context"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// Members tells who is here. Methods are called from many goroutines and may block until
// their context ends.
type Members interface {
	Status(ctx context.Context) (api.Status, error)
	View(ctx context.Context) (api.View, error)
	Overview(ctx context.Context) (api.Overview, error)
	Upgrade(ctx context.Context) (api.Upgrade, error)
}

// Recoveries tells what is being recovered.
type Recoveries interface {
	// Fences are the open recoveries and the maintenance fences.
	Fences(ctx context.Context) ([]api.Fence, error)
	// Recoveries are the open and the lately ended ones, newest first.
	Recoveries(ctx context.Context) ([]api.Recovery, error)
}

// Operator does what only a person decides.
type Operator interface {
	RetryRecovery(ctx context.Context, r api.RecoveryName) (api.Recovery, error)
	DropRecovery(ctx context.Context, r api.DropRecovery) (api.Recovery, error)
	RaiseFence(ctx context.Context, f api.FenceName) (api.Fence, error)
	LowerFence(ctx context.Context, f api.LowerFence) (api.Fence, error)
	ForgetNode(ctx context.Context, n api.NodeName) (api.Node, error)
	ReplaceNode(ctx context.Context, n api.NodeName) (api.Node, error)
	// Rebase may look at every storage, and take as long as that does.
	Rebase(ctx context.Context, r api.Rebase) (api.Numbers, error)
	FinalizeUpgrade(ctx context.Context, r api.FinalizeUpgrade) (api.Upgrade, error)
}

// Drains has nodes do nothing, before they are stopped.
type Drains interface {
	// Drain is how far a node is; CodeNotFound for a node that the group does not know.
	Drain(ctx context.Context, node string) (api.Drain, error)
	// DrainNode notes the wish durably; it does not wait for the node.
	DrainNode(ctx context.Context, n api.NodeName) (api.Drain, error)
	UndrainNode(ctx context.Context, n api.NodeName) (api.Drain, error)
	// Removal is how far a node is on its way out for good; CodeNotFound for a node that the group does not know, any more.
	Removal(ctx context.Context, node string) (api.Removal, error)
	// RemoveNode notes the wish durably; it does not wait for the node.
	RemoveNode(ctx context.Context, n api.NodeName) (api.Removal, error)
	MayRestart(ctx context.Context, node string) (api.MayRestart, error)
}

// Tasks is what is being, was, and will be done.
type Tasks interface {
	Tasks(ctx context.Context, f api.TaskFilter) ([]api.Task, error)
	Task(ctx context.Context, id string) (api.Task, error)
	TaskLog(ctx context.Context, id string) (api.TaskLog, error)
	// Cancel notes the wish durably and returns the task; it does not wait for its end.
	Cancel(ctx context.Context, id string) (api.Task, error)
}

// Backups is what is kept.
type Backups interface {
	Backups(ctx context.Context, f api.BackupFilter) ([]api.Backup, error)
	Backup(ctx context.Context, id string) (api.Backup, error)
	// Manifest reads that of a backup from a storage; "" = from the first that has a copy.
	Manifest(ctx context.Context, id, storage string) (api.Manifest, error)
}

// Requests plans work. A method returns when the task is written down durably.
type Requests interface {
	CreateBackup(ctx context.Context, r api.CreateBackup) (api.Task, error)
	Restore(ctx context.Context, r api.RestoreBackup) (api.Task, error)
	// PreviewRestore tells what a restore would do; it changes nothing.
	PreviewRestore(ctx context.Context, r api.RestoreBackup) (api.RestorePlan, error)
	// Undo takes the swap of a completed restore back before it returns, and returns its task.
	Undo(ctx context.Context, task string) (api.Task, error)
}

// Keeping looks after what is kept. Methods return when the task, or the change, is written down durably.
type Keeping interface {
	DeleteBackup(ctx context.Context, id string, r api.DeleteBackup) (api.Task, error)
	UndeleteBackup(ctx context.Context, id string) (api.Backup, error)
	MarkBackup(ctx context.Context, id string, r api.MarkBackup) (api.Backup, error)
	VerifyBackup(ctx context.Context, id string, r api.VerifyBackup) (api.Task, error)
	ReplicateBackup(ctx context.Context, id string, r api.ReplicateBackup) (api.Task, error)
}

// Storages looks into what lies in the storages. Methods take as long as that does.
type Storages interface {
	CheckStorage(ctx context.Context, name string, r api.CheckStorage) ([]api.Finding, error)
	// TryStorage writes, reads and deletes under a name of its own. What is wrong is in the answer, and no error.
	TryStorage(ctx context.Context, name string) (api.Tried, error)
	RebuildCatalog(ctx context.Context, r api.RebuildCatalog) ([]api.Backup, error)
}

// Recurring tells of schedules and retention.
type Recurring interface {
	Schedules(ctx context.Context) ([]api.Schedule, error)
	RunSchedule(ctx context.Context, name string) (api.Task, error)
	EnableSchedule(ctx context.Context, name string, on bool) (api.Schedule, error)
	// Prune is a dry run.
	Prune(ctx context.Context, database string) (api.Prune, error)
	ConfirmPrune(ctx context.Context, database string) (api.Prune, error)
}

// Autonomous tells of components, their items and claims.
type Autonomous interface {
	Components(ctx context.Context) ([]api.Component, error)
	// RunComponent begins a tick and returns soon, whether it has ended or not.
	RunComponent(ctx context.Context, name string) (api.Tick, error)
	Tick(ctx context.Context, name, id string) (api.Tick, error)
	PauseComponent(ctx context.Context, name string, on bool) (api.Component, error)
	// Items are as a component or a trigger sees them, with the reasons why each is not wanted; a query without both sees
	// all alike.
	Items(ctx context.Context, q api.ItemQuery) ([]api.Item, error)
	Item(ctx context.Context, q api.ItemQuery, id string) (api.Item, error)
	PutItem(ctx context.Context, r api.PutItem) (api.Item, error)
	AppendEvent(ctx context.Context, id string, r api.AppendEvent) (api.Item, error)
	ForgetEvents(ctx context.Context, id string, r api.ForgetEvents) (api.Forgotten, error)
	Claims(ctx context.Context) ([]api.Claim, error)
	// EndClaim has a claim end without a second worker for its item; api.CodeBusy while that is under way.
	EndClaim(ctx context.Context, r api.ClaimName, quarantine bool) (api.Claim, error)
}

// Backend is everything that the handler shows and asks. All fields are required, but
// for Translate and Logger.
type Backend struct {
	// Accounts, Trail and Kept are required: NewHandler panics without them, since a handler that kept them to itself would
	// look like one that works.
	Accounts *accounts.Accounts
	Trail    *audit.Trail
	Kept     kept.Store // of answers to requests with an idempotency key

	Members     Members
	Recoveries  Recoveries
	Operator    Operator
	Drains      Drains
	Keyring     Keyring
	Notifier    Notifier
	Reloader    Reloader
	Usage       Users
	Tasks       Tasks
	Backups     Backups
	Requests    Requests
	Keeping     Keeping
	Recurring   Recurring
	Autonomous  Autonomous
	Storages    Storages
	Settings    Settings
	Ledgers     Ledgers
	GroupStates GroupStates
	Bindings    Bindings  // nil: nobody is bound to anything
	Approvals   Approvals // nil: nothing needs a second person
	// Now is the time by which approvals expire; default: time.Now.
	Now func() time.Time
	// Watch gives a channel that receives after any change of what the others show
	// (coalesced: a hint, not a count), until ctx ends.
	Watch func(ctx context.Context) <-chan struct{}
	// Translate turns an error of the others into one for people; nil for one that it
	// does not know, which then travels as it is with code failed. It sees no *api.Error.
	Translate func(error) *api.Error
	// Logger gets what could not be answered; default: none.
	Logger *slog.Logger
}
