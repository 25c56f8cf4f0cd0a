package api

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Paths of what recurs and what runs by itself.
const (
	PathSchedules  = "/v1/schedules"
	PathRetention  = "/v1/retention"
	PathComponents = "/v1/components"
	PathItems      = "/v1/items"
	PathClaims     = "/v1/claims"
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

// Component is an autonomous component on the node that answers.
type Component struct {
	Name        string `json:"name"`
	Paused      bool   `json:"paused"` // in the whole group
	Fenced      bool   `json:"fenced"` // the node's last run is being recovered
	Claims      int    `json:"claims"` // of the whole group
	Queried     int    `json:"queried"`
	Claimed     int    `json:"claimed"` // since the node began, as the following
	Done        int    `json:"done"`
	Failed      int    `json:"failed"`
	Stale       int    `json:"stale"`
	Lost        int    `json:"lost"`
	NotStored   int    `json:"not_stored"`
	NotStopped  int    `json:"not_stopped"` // now: past their end, and still running
	Unpreserved int    `json:"unpreserved"`
}

// Tick is what one run of a component did.
type Tick struct {
	Component string `json:"component"`
	Code      int    `json:"code"` // as the exit code of the command
	Queried   int    `json:"queried"`
	Claimed   int    `json:"claimed"`
	Busy      int    `json:"busy"`
	Done      int    `json:"done"`
	Failed    int    `json:"failed"`
	Problem   string `json:"problem,omitempty"`
}

// Event is one fact about an item.
type Event struct {
	Type    string    `json:"type"`
	Start   time.Time `json:"start"`
	Success bool      `json:"success"`
	Agent   string    `json:"agent,omitempty"`
	Details string    `json:"details,omitempty"`
	Token   uint64    `json:"token,omitempty"` // 0: by hand
	Attempt int       `json:"attempt,omitempty"`
}

// Item is a thing that components work on, as the one that was asked for sees it.
type Item struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	RoundTrip   int             `json:"round_trip"`
	ChangedAt   time.Time       `json:"changed_at"`
	Events      []Event         `json:"events"`
	Data        json.RawMessage `json:"data,omitempty"`
	Failures    int             `json:"failures"`
	Quarantined bool            `json:"quarantined"`
	NotBefore   *time.Time      `json:"not_before,omitempty"`
	Wanted      bool            `json:"wanted"` // the component would work on it now
	Why         []string        `json:"why"`    // why it would not
}

// PutItem makes an item, or says that it has changed.
type PutItem struct {
	ID   string          `json:"id"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// AppendEvent adds an event by hand.
type AppendEvent struct {
	Type    string `json:"type"`
	Failed  bool   `json:"failed,omitempty"`
	Details string `json:"details,omitempty"`
}

// ForgetEvents takes the events of a type away, so that it is as if that had never been done.
type ForgetEvents struct {
	Type string `json:"type"`
}

// Forgotten says how many events were taken away.
type Forgotten struct {
	Events int `json:"events"`
}

// Claim is the right to work on one item, as the group knows it.
type Claim struct {
	Component   string `json:"component"`
	Item        string `json:"item"`
	RoundTrip   int    `json:"round_trip"`
	Token       uint64 `json:"token"`
	Node        string `json:"node"`
	Run         string `json:"run"`
	State       string `json:"state"`      // held, orphan, adopted, quarantined
	Orphanings  int    `json:"orphanings"` // how many holders died with it
	HolderLives bool   `json:"holder_lives"`
}

// ClaimName says which claim is meant.
type ClaimName struct {
	Component string `json:"component"`
	Item      string `json:"item"`
	Token     uint64 `json:"token"`
}

// ComponentPath, SchedulePath, RetentionPath, ItemPath and ItemsPath are paths of one thing, or of what a component sees.
func ComponentPath(name string) string { return PathComponents + "/" + url.PathEscape(name) }
func SchedulePath(name string) string  { return PathSchedules + "/" + url.PathEscape(name) }
func RetentionPath(db string) string   { return PathRetention + "/" + url.PathEscape(db) }

// ItemPath is the path of one item as a component sees it; "" = none.
func ItemPath(component, id string) string {
	return withQuery(PathItems+"/"+url.PathEscape(id), componentQuery(component))
}

// ItemsPath is the path of all items as a component sees them.
func ItemsPath(component string) string { return withQuery(PathItems, componentQuery(component)) }

func componentQuery(name string) url.Values {
	q := url.Values{}
	setText(q, "component", name)
	return q
}

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

// RunComponent makes one tick of a component on the node that answers.
func (c *Client) RunComponent(ctx context.Context, name string) (Tick, error) {
	return post[Tick](ctx, c, ComponentPath(name)+"/run", struct{}{})
}

// PauseComponent has no member claim anything new for a component, or lets them again.
func (c *Client) PauseComponent(ctx context.Context, name string, on bool) (Component, error) {
	return post[Component](ctx, c, ComponentPath(name)+verb(on, "/pause", "/resume"), struct{}{})
}

// PutItem makes an item, or says that it has changed.
func (c *Client) PutItem(ctx context.Context, r PutItem) (Item, error) {
	return post[Item](ctx, c, PathItems, r)
}

// AppendEvent adds an event to an item.
func (c *Client) AppendEvent(ctx context.Context, id string, r AppendEvent) (Item, error) {
	return post[Item](ctx, c, PathItems+"/"+url.PathEscape(id)+"/events", r)
}

// ForgetEvents takes events away from an item.
func (c *Client) ForgetEvents(ctx context.Context, id string, r ForgetEvents) (Forgotten, error) {
	return post[Forgotten](ctx, c, PathItems+"/"+url.PathEscape(id)+"/forget", r)
}

// FreeClaim ends a claim that the node that answers holds and does not work on.
func (c *Client) FreeClaim(ctx context.Context, r ClaimName) (Claim, error) {
	return post[Claim](ctx, c, PathClaims+"/free", r)
}

// QuarantineClaim sets the item of a claim of the node that answers aside.
func (c *Client) QuarantineClaim(ctx context.Context, r ClaimName) (Claim, error) {
	return post[Claim](ctx, c, PathClaims+"/quarantine", r)
}

func verb(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}
