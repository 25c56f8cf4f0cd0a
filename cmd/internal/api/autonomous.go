package api

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Paths of what runs by itself.
const (
	PathComponents = "/api/v1/components"
	PathItems      = "/api/v1/items"
	PathClaims     = "/api/v1/claims"
)

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

// Tick is what one run of a component does, and did.
type Tick struct {
	ID        string     `json:"id"` // on the node that runs it, until it stops
	Component string     `json:"component"`
	Started   time.Time  `json:"started"`
	Ended     *time.Time `json:"ended,omitempty"` // absent: it goes on, and the rest is not known yet
	Code      int        `json:"code"`            // as the exit code of the command
	Queried   int        `json:"queried"`
	Claimed   int        `json:"claimed"`
	Busy      int        `json:"busy"`

	Done        int `json:"done"`
	Failed      int `json:"failed"`
	Stale       int `json:"stale"`
	Unpreserved int `json:"unpreserved"`
	Lost        int `json:"lost"`
	NotStored   int `json:"not_stored"`
	NotStopped  int `json:"not_stopped"`
	Kept        int `json:"kept"` // for recovery

	PollHeldMS int64     `json:"poll_held_ms"`
	Problem    string    `json:"problem,omitempty"` // why nothing, or not all, was tried
	Outcome    string    `json:"outcome"`           // done, failed; of all items
	Failures   []Failure `json:"failures"`          // bounded, with one entry at the end for those that found no room
}

// Failure is one thing that went wrong with an item.
type Failure struct {
	Item    string `json:"item,omitempty"`
	Type    string `json:"type,omitempty"`
	Text    string `json:"text"`
	Details string `json:"details,omitempty"`
}

// ItemQuery selects items and says as whom to look at them. A trigger of its own replaces that of the component, whose
// records are still meant; all fields must be satisfied, an empty one restricts nothing.
type ItemQuery struct {
	Component                            string // "" = nobody: nothing is said of waiting and quarantine
	Past, PastFailed, Future, Old, Types []string
}

// Own tells whether the query has a trigger of its own.
func (q ItemQuery) Own() bool {
	return len(q.Past)+len(q.PastFailed)+len(q.Future)+len(q.Old)+len(q.Types) > 0
}

// Query is the query as it stands in a path.
func (q ItemQuery) Query() url.Values {
	out := url.Values{}
	setText(out, "component", q.Component)
	for key, list := range map[string][]string{"past": q.Past, "past_failed": q.PastFailed, "future": q.Future, "old": q.Old, "type": q.Types} {
		for _, v := range list {
			out.Add(key, v)
		}
	}
	return out
}

// ParseItemQuery is the inverse of Query.
func ParseItemQuery(q url.Values) ItemQuery {
	return ItemQuery{Component: q.Get("component"), Past: q["past"], PastFailed: q["past_failed"], Future: q["future"], Old: q["old"], Types: q["type"]}
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
	// WithinMS is how many milliseconds the answer may wait for the end of the work; 0 is 20 s, and an hour the most.
	WithinMS int64 `json:"within_ms,omitempty"`
}

// ComponentPath and TickPath are paths of a component on the node that answers, and of one of its ticks.
func ComponentPath(name string) string { return PathComponents + "/" + url.PathEscape(name) }
func TickPath(name, id string) string  { return ComponentPath(name) + "/ticks/" + url.PathEscape(id) }

// ItemPath is the path of one item as a component sees it, or as a trigger does.
func ItemPath(q ItemQuery, id string) string {
	return withQuery(PathItems+"/"+url.PathEscape(id), q.Query())
}

// ItemsPath is the path of all items as a component sees them, or as a trigger does.
func ItemsPath(q ItemQuery) string { return withQuery(PathItems, q.Query()) }

// RunComponent makes one tick of a component on the node that answers. It returns soon, whether the tick has ended or not:
// the tick goes on without the caller.
func (c *Client) RunComponent(ctx context.Context, name string) (Tick, error) {
	return post[Tick](ctx, c, ComponentPath(name)+"/run", struct{}{})
}

// AwaitTick waits until a tick has ended.
func (c *Client) AwaitTick(ctx context.Context, t Tick) (Tick, error) {
	if t.Ended != nil {
		return t, nil
	}
	err := Watch(ctx, c, TickPath(t.Component, t.ID), func(now Tick) bool {
		t = now
		return t.Ended == nil
	})
	return t, err
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

// FreeClaim has a claim end, whoever holds it, and the item be for whoever comes next. CodeBusy: it is still under way at the
// end of r.WithinMS.
func (c *Client) FreeClaim(ctx context.Context, r ClaimName) (Claim, error) {
	return post[Claim](ctx, c, PathClaims+"/free", r)
}

// QuarantineClaim has a claim end, whoever holds it, and its item be set aside. CodeBusy: as FreeClaim.
func (c *Client) QuarantineClaim(ctx context.Context, r ClaimName) (Claim, error) {
	return post[Claim](ctx, c, PathClaims+"/quarantine", r)
}
