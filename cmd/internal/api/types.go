package api

import "time"

// Status says how the daemon that answers is doing.
type Status struct {
	Node    string `json:"node"`
	Run     string `json:"run"` // 32 hex digits; empty before the node has joined
	Epoch   uint64 `json:"epoch"`
	Group   string `json:"group"`
	Cluster string `json:"cluster"` // id of the group; empty before the node has joined it
	Leader  string `json:"leader"`  // node name, empty when none is known
	Version string `json:"version"` // of the program
	View    uint64 `json:"view"`    // version of the last view seen
	State   string `json:"state"`   // starting, joining, waiting for the ledger, waiting at the fence, ready, stopping
	Lease   string `json:"lease"`   // held, suspect, expired
	Ready   bool   `json:"ready"`
	// CertificateUntil is when the node's certificate expires; none without certificates.
	CertificateUntil *time.Time `json:"certificate_until,omitempty"`
	// Sealed are the processors of the backups that the node makes which it has no key to open: it restores and verifies none.
	Sealed []string `json:"sealed,omitempty"`
	// Problems are what an operator should know, one sentence each; empty when all is well.
	Problems []string `json:"problems"`
}

// Member is one run of a node in the present view.
type Member struct {
	Node        string     `json:"node"`
	Run         string     `json:"run"`
	Epoch       uint64     `json:"epoch"` // position at which the run was opened
	Role        string     `json:"role"`  // core, spectator, watchdog, witness
	State       string     `json:"state"` // joined, ready, suspected, draining, drained, stopping; refused: no member, its certificate does not count
	Ready       bool       `json:"ready"`
	Suspected   bool       `json:"suspected"`
	Leader      bool       `json:"leader"`
	Voter       bool       `json:"voter"`
	Fed         bool       `json:"fed"`  // another member brings it the log: it is no voter and no follower
	Self        bool       `json:"self"` // the member that answers
	GossipAddr  string     `json:"gossip_addr"`
	ClusterAddr string     `json:"cluster_addr"`
	Components  []string   `json:"components"`
	Version     string     `json:"version"`             // of its program
	Protocol    uint32     `json:"protocol"`            // newest that its program reads
	JoinedAt    *time.Time `json:"joined_at,omitempty"` // when this member saw it join, by its own clock
	Problem     string     `json:"problem,omitempty"`   // why the member that answers cannot speak with it
}

// MemberRefused is the state of a node that comes, or is dialled, and whose certificate does not count.
const MemberRefused = "refused"

// States of a node that an operator has decided about.
const (
	NodeForgotten   = "forgotten"   // its home is refused for good
	NodeReplaceable = "replaceable" // its next run may come from another home
)

// Node is what was decided about a node.
type Node struct {
	Node  string `json:"node"`
	State string `json:"state"`
}

// View is the agreed list of members.
type View struct {
	Version uint64   `json:"version"`
	Members []Member `json:"members"` // in the order in which their runs were opened
	Leader  string   `json:"leader"`
	// Refused are nodes that would be members if their certificates counted, as the member that answers has met them.
	Refused []Member `json:"refused,omitempty"`
	// Stale is true when no majority confirmed the view: it may be an old one.
	Stale bool `json:"stale"`
}

// States of a fence.
const (
	FenceQueued      = "queued"      // an older run's recovery of the same component and node goes first
	FenceWaiting     = "waiting"     // no member can recover it yet
	FenceAppointed   = "appointed"   // a member was told to
	FenceRaised      = "raised"      // it holds the fence
	FenceParked      = "parked"      // all have failed; an operator decides
	FenceMaintenance = "maintenance" // raised on purpose, on a living run
	FenceLowered     = "lowered"     // there is none any more
)

// Fence is an open recovery of one component of one closed run, or a maintenance fence.
type Fence struct {
	Component string     `json:"component"`
	Node      string     `json:"node"`       // whose work is fenced
	Run       string     `json:"run"`        // the closed run
	Holder    string     `json:"holder"`     // node appointed or holding
	HolderRun string     `json:"holder_run"` //
	Token     uint64     `json:"token"`      // 0 before it was raised for the first time
	State     string     `json:"state"`
	Index     uint64     `json:"index"`    // position of the present appointment
	Attempts  int        `json:"attempts"` // failures of the present holder
	Tried     []string   `json:"tried"`    // nodes that had their turn
	Evidence  string     `json:"evidence"` // why the run was closed
	Problem   string     `json:"problem,omitempty"`
	Since     *time.Time `json:"since,omitempty"` // when the run was closed, by the clock of who led then
	// WaitingFor says in one phrase what has to happen next.
	WaitingFor string `json:"waiting_for,omitempty"`
}

// Recovery is what became, or becomes, of one component of one closed run.
type Recovery struct {
	Component string     `json:"component"`
	Node      string     `json:"node"`
	Run       string     `json:"run"`
	Evidence  string     `json:"evidence"`
	State     string     `json:"state"`     // a state of a fence while open; then released or dropped
	Recoverer string     `json:"recoverer"` // node that holds it, or did at the end
	Token     uint64     `json:"token"`
	Attempts  int        `json:"attempts"`
	Tried     []string   `json:"tried"`
	Problem   string     `json:"problem,omitempty"` // of the last failed attempt
	Opened    uint64     `json:"opened"`            // position of the run's closing: the version of the view without it
	Ended     uint64     `json:"ended"`             // position, 0 while open
	Since     *time.Time `json:"since,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Steps     []Step     `json:"steps"` // what happened: the first, and the last ones, at most 20 in all
}

// Step is something that happened to a recovery.
type Step struct {
	// What: closed, queued, waiting, appointed, raised, failed, handed over, parked, retried, released, dropped, quiesced.
	What     string     `json:"what"`
	Position uint64     `json:"position"`
	At       *time.Time `json:"at,omitempty"`    // by the clock of who led then
	Node     string     `json:"node,omitempty"`  // appointed or holding; for closed and quiesced the dead one
	Run      string     `json:"run,omitempty"`   //
	Token    uint64     `json:"token,omitempty"` // of the fence, where one was raised
	Why      string     `json:"why,omitempty"`
}

// Task is one execution: of a backup, a restore, a delete, a verification.
type Task struct {
	ID          string   `json:"id"`
	Type        string   `json:"type"`     // create, restore, delete, verify, replicate
	RunType     string   `json:"run_type"` // user, internal
	State       string   `json:"state"`
	Final       bool     `json:"final"` // it has ended, one way or another
	Attempt     int      `json:"attempt"`
	MaxAttempts int      `json:"max_attempts"`
	Node        string   `json:"node"`  // owner of the present attempt, empty while planned
	Run         string   `json:"run"`   //
	Token       uint64   `json:"token"` //
	Database    string   `json:"database"`
	Backup      string   `json:"backup"`
	Target      string   `json:"target,omitempty"` // restore: database that is made
	Replace     bool     `json:"replace,omitempty"`
	Storages    []string `json:"storages"`
	Needs       *Needs   `json:"needs,omitempty"` // what a node must have to carry it out; none: nothing but its names
	Progress    Progress `json:"progress"`
	Error       string   `json:"error,omitempty"` // one sentence
	Hint        string   `json:"hint,omitempty"`
	// Waits says why nobody begins a planned task, one phrase each; only of a task that was asked for by its id.
	Waits []string `json:"waits,omitempty"`
	// Undo is the database that a restore replaced and that is kept for a while; see Client.Undo.
	Undo string `json:"undo,omitempty"`

	Created         time.Time  `json:"created"`
	Updated         time.Time  `json:"updated"`
	Finished        *time.Time `json:"finished,omitempty"`
	Begun           *time.Time `json:"begun,omitempty"`      // when the present attempt, or the last one, began
	NotBefore       *time.Time `json:"not_before,omitempty"` // it does not begin before; a delete can be undone until then
	CancelRequested bool       `json:"cancel_requested"`
	CancelBy        string     `json:"cancel_by,omitempty"`
}

// Completed is the final state of a task that did what it was asked for.
const Completed = "completed"

// Needs are what a node must have to carry a task out, beside that it knows its database and storages and reaches them.
type Needs struct {
	Labels []string `json:"labels"` // all of them
	Client int      `json:"client"` // major version of its client programs, at least; 0: any
}

// Progress counts the bytes of the present attempt, which flow through all stages at once.
type Progress struct {
	Read      int64            `json:"read"`      // from the source, or from a storage when it is not a backup
	Estimate  int64            `json:"estimate"`  // of what Read will be in the end; 0: unknown
	Processed int64            `json:"processed"` // that came out of the processors, or of their inverses
	Stored    map[string]int64 `json:"stored"`    // by storage
	Rate      int64            `json:"rate"`      // of Read per second, of late; 0: unknown, or nothing comes
	LeftMS    int64            `json:"left_ms"`   // until Read is what is estimated, at that rate; 0: unknown
}

// TaskLog is what is kept of a task's log: the newest lines, oldest first.
type TaskLog struct {
	Task    string    `json:"task"`
	Dropped int       `json:"dropped"` // older lines that are not kept any more
	Lines   []LogLine `json:"lines"`
}

// LogLine is something that happened to a task.
type LogLine struct {
	At      time.Time `json:"at"` // by the clock of the node
	Attempt int       `json:"attempt"`
	Token   uint64    `json:"token"`
	Node    string    `json:"node"`
	Level   string    `json:"level"` // info, warn, error
	Text    string    `json:"text"`
}

// Backup is what is kept of one database at one moment.
type Backup struct {
	ID          string     `json:"id"`
	Database    string     `json:"database"`
	State       string     `json:"state"` // creating, completed, deleting, gone
	Token       uint64     `json:"token"` // of the attempt whose objects count
	AsOf        *time.Time `json:"as_of,omitempty"`
	RawBytes    int64      `json:"raw_bytes"`         // before the processors
	StoredBytes int64      `json:"stored_bytes"`      // of one copy, after them
	SHA256      string     `json:"sha256"`            // of the archive before the processors
	Partial     string     `json:"partial,omitempty"` // which part of the database it holds, in words; "": all of it
	Storages    []Copy     `json:"storages"`
	Created     time.Time  `json:"created"`
	Completed   *time.Time `json:"completed,omitempty"`
	DurationMS  int64      `json:"duration_ms"` // 0 while not completed

	Verified *time.Time `json:"verified,omitempty"` // when it was last read back, or restored, and found whole
	Suspect  []string   `json:"suspect"`            // what is odd about it, one sentence each
	Pinned   bool       `json:"pinned"`             // never deleted
	Accepted bool       `json:"accepted"`           // somebody wants it although it is suspect
	Note     string     `json:"note,omitempty"`
	MarkedBy string     `json:"marked_by,omitempty"` // who pinned, accepted or noted last
	Globals  string     `json:"globals,omitempty"`   // roles and tablespaces: with passwords, without passwords, or why there are none; "": not asked for
}

// RestorePlan is what a restore would do, and what it would meet.
type RestorePlan struct {
	Backup    Backup   `json:"backup"`
	Database  string   `json:"database"` // configured name whose server receives it
	Target    string   `json:"target"`   // database that is made
	Storage   string   `json:"storage"`  // that is read
	Server    string   `json:"server"`   // version
	Exists    bool     `json:"exists"`   // there is a database of the target's name
	Bytes     int64    `json:"bytes"`    // of that one
	Clients   []string `json:"clients"`  // sessions in it, as role/application, at most 20
	More      int      `json:"more_clients,omitempty"`
	InPlace   bool     `json:"in_place,omitempty"`
	KeepOldMS int64    `json:"keep_old_ms"` // how long the replaced database is kept as the undo; 0: there is none
}

// Copy is a backup in one storage.
type Copy struct {
	Storage string `json:"storage"`
	State   string `json:"state"` // present, missing, corrupt
	Bytes   int64  `json:"bytes"`
	Error   string `json:"error,omitempty"`
}

// Numbers are how far the group's positions and tokens have come.
type Numbers struct {
	Base     uint64 `json:"base"`     // positions are above it
	Position uint64 `json:"position"` // of the last entry of the log
	Token    uint64 `json:"token"`    // last one that was granted
	Before   uint64 `json:"before"`   // the highest of both, before they were raised
}
