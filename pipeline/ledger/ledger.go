package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost/fencepost/pipeline/source"
)

// Errors a caller branches on. Implementations wrap them.
var (
	// ErrNotFound: no such task or backup.
	ErrNotFound = errors.New("not found in the ledger")
	// ErrExists: an entry of that id exists.
	ErrExists = errors.New("exists in the ledger")
	// ErrFenced: the write's guard does not stand: the run is closed, the claim or fence moved, a larger token took the
	// row. Nothing was written; the worker stops itself.
	ErrFenced = errors.New("fenced: a successor has taken over")
	// ErrFinal: the task has ended; nothing more is written to it.
	ErrFinal = errors.New("task has ended")
	// ErrInFlight: another task of the same flight has begun; this one may begin when that has ended. Nothing was written.
	ErrInFlight = errors.New("another task is at it")
	// ErrRefused: what there is does not allow it: see MayBegin. Nothing was written.
	ErrRefused = errors.New("refused")
	// ErrUnavailable: the ledger cannot be reached or has no quorum. The outcome of a write is unknown: read again.
	ErrUnavailable = errors.New("ledger is unavailable")
	// ErrAhead: the ledger has seen a higher number than the group has given out: the group was rolled back, or another one
	// writes here too. Nothing is begun until a person had the group's numbers raised. It comes together with ErrUnavailable.
	ErrAhead = errors.New("ledger is ahead of the group")
)

// TaskType says what a task does.
type TaskType string

// Task types.
const (
	Create    TaskType = "create"
	Restore   TaskType = "restore"
	Delete    TaskType = "delete"
	Verify    TaskType = "verify"
	Replicate TaskType = "replicate"
)

// State is the state of a task (SEEDS.md section 2).
type State string

// Task states. Completed, Failed, Interrupted, Reverted and Cancelled are final.
const (
	Planned      State = "planned"
	Creating     State = "creating"
	Processing   State = "applying processors"
	Uploading    State = "uploading"
	Downloading  State = "downloading"
	Deprocessing State = "applying deprocessors"
	Restoring    State = "restoring"
	Deleting     State = "deleting"
	Completed    State = "completed"
	Failed       State = "failed"
	Interrupted  State = "interrupted"
	Reverted     State = "reverted"
	Cancelled    State = "cancelled"
)

// RunType says who asked for a task.
type RunType string

// Run types.
const (
	User     RunType = "user"
	Internal RunType = "internal"
)

// Final tells whether a task in state s has ended.
func (s State) Final() bool {
	switch s {
	case Completed, Failed, Interrupted, Reverted, Cancelled:
		return true
	}
	return false
}

// Task is one execution of something: a row with an owner.
type Task struct {
	ID          string   `json:"id"`
	Type        TaskType `json:"type"`
	RunType     RunType  `json:"run_type"`
	State       State    `json:"state"`
	Attempt     int      `json:"attempt"`      // 0 while planned for the first time
	MaxAttempts int      `json:"max_attempts"` // at least 1
	OnFailure   string   `json:"on_failure"`   // rerun | revert: what a recoverer does after it reverted the attempt

	Database string   `json:"database"`           // configured name of the database
	Backup   string   `json:"backup,omitempty"`   // backup made, restored, deleted, verified or copied
	Of       string   `json:"of,omitempty"`       // database that Backup is of, where it is not Database
	Flight   string   `json:"flight,omitempty"`   // of tasks with the same one at most one has begun; "" = any number
	Schedule string   `json:"schedule,omitempty"` // that it is an occurrence of; empty = asked for otherwise
	Scratch  string   `json:"scratch,omitempty"`  // verify: configured name of the server that it is restored into for a while
	Target   string   `json:"target,omitempty"`   // restore: name of the database to make
	Replace  bool     `json:"replace,omitempty"`  // restore: an existing target may be replaced
	Foreign  bool     `json:"foreign,omitempty"`  // restore: whoever has made the backup
	Storages []string `json:"storages,omitempty"`
	Require  string   `json:"require,omitempty"` // create: all | any | number of storages that must hold a copy
	Needs    Needs    `json:"needs,omitzero"`    // what a node must have to carry it out

	Server   string `json:"server,omitempty"`    // create: address of the server that it dumps, where MaxDumps counts
	MaxDumps int    `json:"max_dumps,omitempty"` // create: of those at Server at most so many have begun; 0 = any number

	Dump    source.DumpOptions    `json:"dump,omitzero"`    // create: what of the database
	Choices source.RestoreChoices `json:"choices,omitzero"` // restore: how, and what of the backup

	Node     string          `json:"node,omitempty"`  // owner of the present attempt
	Run      string          `json:"run,omitempty"`   // its run id, hex
	Token    uint64          `json:"token,omitempty"` // its fencing token; never decreases
	Taken    bool            `json:"taken,omitempty"` // nothing has begun under that token; set by Take, a write can only end it
	Progress Progress        `json:"progress"`
	Prepared source.Prepared `json:"prepared"` // restore: recorded before the swap

	Error     string    `json:"error,omitempty"` // one sentence, no secrets
	Hint      string    `json:"hint,omitempty"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Begun     time.Time `json:"begun,omitzero"` // when the present attempt, or the last one, began; the ledger sets it
	Finished  time.Time `json:"finished,omitzero"`
	StartBy   time.Time `json:"start_by,omitzero"`   // restore: not begun by then = expired
	NotBefore time.Time `json:"not_before,omitzero"` // not begun before; a delete can be undone until then

	CancelBy string `json:"cancel_by,omitempty"` // who asked for a cancel; kept beside the row, joined when read, ignored when written
}

// Progress counts bytes of the present attempt. They flow through all stages at once.
type Progress struct {
	Read      int64            `json:"read"`                // from the source (create) or a storage
	Estimate  int64            `json:"estimate"`            // expected Read in the end; 0 = unknown
	Processed int64            `json:"processed,omitempty"` // that came out of the processors (create), or of their inverses
	Stored    map[string]int64 `json:"stored,omitempty"`    // per storage
	Rate      int64            `json:"rate,omitempty"`      // of Read per second, of late, by the clock of the node that works
}

// BackupState is the state of a backup's entry.
type BackupState string

// States of a backup. An entry never leaves BackupGone, and leaves BackupCompleted only for BackupDeleting. An attempt
// that came to nothing leaves its entry BackupGone too, so that a sweep still knows the backup's id.
const (
	BackupCreating  BackupState = "creating"
	BackupCompleted BackupState = "completed"
	BackupDeleting  BackupState = "deleting"
	BackupGone      BackupState = "gone"
)

// Backup is what is kept of one database at one moment.
type Backup struct {
	ID        string      `json:"id"`
	Database  string      `json:"database"`
	State     BackupState `json:"state"`
	Token     uint64      `json:"token"` // of the attempt whose objects count
	AsOf      time.Time   `json:"as_of"`
	Info      source.Info `json:"info"`
	RawBytes  int64       `json:"raw_bytes"` // of all parts, before the processors
	SHA256    string      `json:"sha256"`    // of the data part before the processors, hex
	Copies    []Copy      `json:"copies"`
	Created   time.Time   `json:"created"`
	Completed time.Time   `json:"completed,omitzero"`
	Gone      time.Time   `json:"gone,omitzero"` // when the entry became BackupGone

	Verified time.Time `json:"verified,omitzero"` // when it was last read back, or restored, and found whole
	Suspect  []string  `json:"suspect,omitempty"` // what is odd about it, one sentence each
	Mark     Mark      `json:"mark,omitzero"`     // what people say of it; ImportBackup brings it, and only EditBackup changes it
}

// Mark is what people say of a backup.
type Mark struct {
	Pinned   bool   `json:"pinned,omitempty"`   // never deleted
	Accepted bool   `json:"accepted,omitempty"` // somebody has looked at a suspect one and wants it
	Note     string `json:"note,omitempty"`     // at most MaxText bytes
	By       string `json:"by,omitempty"`       // who said so last

	At time.Time `json:"at,omitzero"` // when
}

// States of a copy.
const (
	CopyPresent = "present"
	CopyMissing = "missing" // never came there, or is gone from there
	CopyCorrupt = "corrupt" // is not what was stored
)

// Copy is a backup in one storage.
type Copy struct {
	Storage string `json:"storage"`
	State   string `json:"state"` // present | missing | corrupt
	Bytes   int64  `json:"bytes"` // stored size of all parts
	Error   string `json:"error,omitempty"`
}

// Good tells whether b counts as a backup of its database: it is sound, and holds all of it.
func (b Backup) Good() bool { return b.Sound() && b.Info.Options.Partial() == "" }

// Sound tells whether b is complete and, as far as is known, what it claims to be: a suspect one only when it was accepted. It
// may hold chosen parts only.
func (b Backup) Sound() bool {
	return b.State == BackupCompleted && (len(b.Suspect) == 0 || b.Mark.Accepted)
}

// Guard is the right under which a write is made. Implementations check it where the write takes effect: a write whose
// guard does not stand at that point is ErrFenced and changes nothing (promise P3).
type Guard struct {
	Run       string // hex run id of the writer; must be open
	Component string // of the claim
	Item      string // of the claim: the task id
	Token     uint64 // of the claim, or the one that an adoption gave; must be the claim's present token
	Fence     *Fence // set by a recoverer: its fence must be held too
}

// Fence names a raised fence.
type Fence struct {
	Component string
	Node      string // node whose run is recovered
	Run       string // the dead run, hex
	Token     uint64
}

// TaskFilter selects tasks; zero fields select all.
type TaskFilter struct {
	Active   bool // not final
	Database string
	Type     TaskType
	RunType  RunType
	Backup   string
	Limit    int   // newest first; 0 = all
	After    Place // a page: what comes after it, newest first
}

// Place is a place in a listing, newest first: after the row of that creation time and id. The zero value is its
// beginning.
type Place struct {
	Created time.Time
	ID      string
}

// BackupFilter selects backups; zero fields select all, BackupGone excepted unless asked for by state.
type BackupFilter struct {
	Database string
	State    BackupState
	Limit    int   // newest first; 0 = all
	After    Place // as of TaskFilter
}

// Change is one guarded transaction: the task's row, and with it a backup's entry when Backup is set.
type Change struct {
	Task   Task
	Backup *Backup
	// Confirm has a last word when the change makes a backup BackupDeleting: it is asked with all entries of the backup's
	// database (gone ones excepted) as they are where the change takes effect, and what it returns is the change's error.
	// Pure and quick; it may be asked more than once. nil: no objection.
	Confirm func(entries []Backup) error
}

// Tasks is the task half of a ledger.
type Tasks interface {
	// Plan inserts a task in state Planned; ErrExists when the id is taken.
	Plan(ctx context.Context, t Task) error
	// Task reads one task, not staler than the call.
	Task(ctx context.Context, id string) (Task, error)
	// Tasks lists tasks, newest first.
	Tasks(ctx context.Context, f TaskFilter) ([]Task, error)
	// Take is the first write under a claim, and its re-validation (PROTOCOL.md 25): it sets run, node and token where
	// the stored token is smaller and the state is not final, raises Attempt by one, leaves the state as it was, and
	// returns the row as it was before. A row that was taken, and under whose token nothing has begun since, is on
	// its next attempt already: holders who found something away, or who died early, use up none. ErrFinal when the task has ended, ErrFenced when the guard does not stand.
	Take(ctx context.Context, g Guard, id, node string) (before Task, err error)
	// Write makes a guarded change; the stored token must be g.Token. ErrFenced, ErrFinal as above. Identity and
	// ownership (id, type, token, run, node, creation time) stay as stored whatever c.Task says; Attempt too, but that
	// a write of State Planned may give back the present attempt (Attempt one lower: a planned stop costs none).
	Write(ctx context.Context, g Guard, c Change) error
	// A write that has the task begin (see Begins) is checked by MayBegin where it takes effect, one after the other for
	// the tasks of a database: ErrInFlight, ErrRefused.
	//
	// RequestCancel notes that by wants the task cancelled; ErrFinal when it has ended. Idempotent.
	RequestCancel(ctx context.Context, id, by string) error
}

// Backups is the backup half of a ledger.
type Backups interface {
	Backup(ctx context.Context, id string) (Backup, error)
	// Backups lists entries, newest first.
	Backups(ctx context.Context, f BackupFilter) ([]Backup, error)
	// EditBackup changes the mark of an entry and returns it. It needs no claim. edit is pure; it may be called more than
	// once. ErrNotFound; ErrFinal when the backup is being deleted or gone.
	EditBackup(ctx context.Context, id string, edit func(Mark) Mark) (Backup, error)
	// ImportBackup inserts the entry of a completed backup that was found in storages; ErrExists when there is an entry
	// of that id, in whatever state. It needs no claim.
	ImportBackup(ctx context.Context, b Backup) error
}

// TaskError is a failure of one attempt that left something to revert.
type TaskError struct {
	Seq     int64 // grows with the time of noting
	Task    string
	Token   uint64 // of the attempt
	Problem string
	Noted   time.Time
}

// Errors is the part of a ledger that notes failures which somebody has to revert.
type Errors interface {
	// NoteError notes that the attempt guarded by g failed and left something to revert. It is a guarded write; a second
	// one of the same attempt changes nothing.
	NoteError(ctx context.Context, g Guard, what string) error
	// HandleErrors calls handle for at most n errors, the oldest that nobody has handled, and marks those for which it
	// returned nil; an error that is not marked comes again. What another node is looking at is left to it where the
	// ledger can tell. handle must be quick: it only turns the error into something to do, and may be called again.
	HandleErrors(ctx context.Context, n int, handle func(context.Context, TaskError) error) (handled int, err error)
}

// Logs is the part of a ledger that keeps what there is to tell of tasks.
type Logs interface {
	// AppendLog adds lines to the log of g's task; AfterLog says what is kept. It is a guarded write, which may also be
	// made after the task has ended, as long as its claim is held.
	AppendLog(ctx context.Context, g Guard, lines []LogLine) error
	// Log reads the log of a task; one of which nothing was told has an empty one. ErrNotFound: there is no such task.
	Log(ctx context.Context, id string) (Log, error)
}

// Ledger keeps tasks and backups. Every implementation passes ledgertest.Run. Methods are safe for concurrent use and
// may block until ctx ends.
type Ledger interface {
	Tasks
	Backups
	Errors
	Logs
	// ShutOut is a recoverer's first act under its fence: after it returned nil, no write guarded by f.Run, or by an
	// earlier token of the same fence, takes effect (PROTOCOL.md 23).
	ShutOut(ctx context.Context, f Fence) error
	// Watch returns a channel that gets a value after changes (coalesced; a hint, never the truth) until ctx ends.
	Watch(ctx context.Context) <-chan struct{}
}
