package api

import (
	"context"
	"time"
)

// PathOverview is the group in one screen.
const PathOverview = "/api/v1/overview"

// Health of a group: what its worst alarm says.
const (
	HealthWell     = "well"     // nothing needs a person
	HealthWarned   = "warned"   // somebody should look when there is time
	HealthAlarmed  = "alarmed"  // data is at risk, or work stands still, until a person does something
	HealthNoQuorum = "noquorum" // the group can neither decide nor claim anything
)

// Overview is what a person wants to know first, as one node sees it.
type Overview struct {
	Status
	Health    string          `json:"health"` // well, warned, alarmed, noquorum
	Stale     bool            `json:"stale"`  // no majority confirmed it
	Crew      Crew            `json:"crew"`
	Upgrade   Upgrade         `json:"upgrade"`
	Alarms    []Alarm         `json:"alarms"` // worst first
	Fences    []Fence         `json:"fences"`
	Databases []DatabaseState `json:"databases"` // by name; empty on a node that does not show work
	Storages  []StorageState  `json:"storages"`  // by name, as this node reaches them
	Active    int             `json:"active"`    // tasks that have begun and not ended
	Waiting   int             `json:"waiting"`   // tasks that are planned
	// GroupState is where the group has stored its own state, by storage.
	GroupState []GroupCopy `json:"group_state"`
	// Kit is the newest that was made; none where the group knows of none.
	Kit *Kit `json:"kit,omitempty"`
}

// Crew counts the members.
type Crew struct {
	Members   int `json:"members"`
	Ready     int `json:"ready"`
	Suspected int `json:"suspected"`
	Voters    int `json:"voters"`  // of the log, present or not
	Present   int `json:"present"` // voters that are members and not suspected
	Spare     int `json:"spare"`   // how many more of those present may be lost
}

// Severity says how soon a person should look at an alarm.
type Severity string

// Severities.
const (
	Critical Severity = "critical" // now: data is at risk, or work stands still
	Warning  Severity = "warning"  // when there is time
)

// Alarm is something that needs a person. Kind and About together name it: it is the same alarm for as long as they are.
type Alarm struct {
	Kind     string     `json:"kind"`  // quorum, lease, backup and so on: configs.Events
	About    string     `json:"about"` // node, database, storage, task; what it is about
	Severity Severity   `json:"severity"`
	Text     string     `json:"text"` // one sentence
	Hint     string     `json:"hint,omitempty"`
	Cause    string     `json:"cause,omitempty"` // alarms of one cause are told together
	Since    *time.Time `json:"since,omitempty"`
	// Occurrence tells two of the same name apart: the task that failed, the backup that is suspect.
	Occurrence string `json:"occurrence,omitempty"`
	// Local is true for what only one node can see of itself; From is that node when it is not the one that answers.
	Local bool   `json:"local"`
	From  string `json:"from,omitempty"`
}

// Key names the alarm.
func (a Alarm) Key() string { return a.Kind + "/" + a.About }

// States of a database's backups.
const (
	BackupsGood      = "good"
	BackupsOverdue   = "overdue"   // the newest good one is older than the database's rpo, or there is none after that time
	BackupsNone      = "none"      // there is none yet
	BackupsUnwatched = "unwatched" // nobody expects one: rpo is 0, or the database is not configured here any more
)

// DatabaseState is how a database's backups are.
type DatabaseState struct {
	Name     string     `json:"name"`
	State    string     `json:"state"` // good, overdue, none, unwatched
	Backup   string     `json:"backup,omitempty"`
	LastGood *time.Time `json:"last_good,omitempty"` // time of the newest good backup's snapshot
	Storages []string   `json:"storages"`            // that hold it
	Verified *time.Time `json:"verified,omitempty"`
	Bytes    int64      `json:"bytes"` // of one copy of it
	RPOMS    int64      `json:"rpo_ms"`
	Due      *time.Time `json:"due,omitempty"`     // when it becomes overdue
	Next     *time.Time `json:"next,omitempty"`    // backup that is scheduled
	Running  string     `json:"running,omitempty"` // task that makes one
	Failed   string     `json:"failed,omitempty"`  // newest task that made none since the last good one
	Error    string     `json:"error,omitempty"`   // why
}

// StorageState is how a storage is.
type StorageState struct {
	Name    string     `json:"name"`
	State   string     `json:"state"` // ready, away, strange (not the one that the group knows), unknown (not looked at yet)
	Problem string     `json:"problem,omitempty"`
	Hint    string     `json:"hint,omitempty"`
	Since   *time.Time `json:"since,omitempty"` // when this node first saw it so
}

// Overview asks for the group in one screen.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	return Get[Overview](ctx, c, PathOverview)
}
