package api

import (
	"context"
	"net/url"
	"time"
)

// Paths of what recurs.
const (
	PathSchedules = "/api/v1/schedules"
	PathRetention = "/api/v1/retention"
)

// Schedule is recurring work.
type Schedule struct {
	Name     string       `json:"name"`
	Kind     string       `json:"kind"` // backup, verify
	Database string       `json:"database"`
	Cron     string       `json:"cron"`
	Zone     string       `json:"zone"`
	Disabled bool         `json:"disabled"`
	By       string       `json:"by,omitempty"`      // who enabled or disabled it last
	Skipped  string       `json:"skipped,omitempty"` // the last occurrence that was skipped, and why
	Next     []Occurrence `json:"next"`              // the next five, none while it is disabled
	Last     *Task        `json:"last,omitempty"`    // its newest task
}

// Occurrence is one time at which a schedule's work is due, with the offset of the schedule's zone.
type Occurrence struct {
	Due   time.Time `json:"due"`
	Start time.Time `json:"start"` // due and the schedule's share of its spread
}

// Prune says what retention does with the backups of a database, and why. It is a dry run.
type Prune struct {
	Database  string          `json:"database"`
	Decisions []PruneDecision `json:"decisions"` // newest first
	Stops     []string        `json:"stops"`     // why nothing goes now; empty when what is to be removed goes
}

// PruneDecision is what becomes of one backup.
type PruneDecision struct {
	Backup string     `json:"backup"`
	AsOf   *time.Time `json:"as_of,omitempty"`
	Action string     `json:"action"` // keep, remove, held
	Reason string     `json:"reason"`
	Rules  []string   `json:"rules"` // that hold it
}

// SchedulePath and RetentionPath are paths of one thing.
func SchedulePath(name string) string { return PathSchedules + "/" + url.PathEscape(name) }
func RetentionPath(db string) string  { return PathRetention + "/" + url.PathEscape(db) }

// RunSchedule plans a task of a schedule now.
func (c *Client) RunSchedule(ctx context.Context, name string) (Task, error) {
	return post[Task](ctx, c, SchedulePath(name)+"/run", struct{}{})
}

// EnableSchedule lets a schedule make tasks, or not.
func (c *Client) EnableSchedule(ctx context.Context, name string, on bool) (Schedule, error) {
	return post[Schedule](ctx, c, SchedulePath(name)+verb(on, "/enable", "/disable"), struct{}{})
}

// ConfirmPrune has a database be looked at again, and for an hour lets more go at once than its share.
func (c *Client) ConfirmPrune(ctx context.Context, database string) (Prune, error) {
	return post[Prune](ctx, c, RetentionPath(database)+"/confirm", struct{}{})
}

func verb(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}
