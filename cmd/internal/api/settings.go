package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Paths of the group's settings, and of what is made of them.
const (
	PathSettings  = Base + "/settings"
	PathServers   = Base + "/servers"
	PathDatabases = Base + "/databases"
)

// Setting is one thing that belongs to the whole group.
type Setting struct {
	Kind string `json:"kind"` // storage, server, database, schedule, retention, binding, approval, hook, mail, rule, heartbeat
	Name string `json:"name"` // of a retention: its database's
	// Spec is an object with the keys of the settings file; keys that have their default are left out.
	Spec json.RawMessage `json:"spec"`
}

// Settings are all of them, by kind and name.
type Settings struct {
	Version  uint64    `json:"version"` // grows with each change
	Settings []Setting `json:"settings"`
}

// ApplySettings asks for the group to have these settings.
type ApplySettings struct {
	Settings []Setting `json:"settings"`
	Prune    bool      `json:"prune,omitempty"`   // others are removed; backups never are
	Version  uint64    `json:"version,omitempty"` // only while that is theirs; 0: whatever it is
	// Seen are some of them as who asks has seen them: nothing is changed when one is otherwise by now.
	Seen []SeenSetting `json:"seen,omitempty"`
}

// SeenSetting is a setting as somebody has seen it.
type SeenSetting struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Tag  string `json:"tag"` // of its spec; none: there was no such setting
}

// NoSetting is the tag of a setting that there is not.
const NoSetting = "none"

// SpecTag tells a spec from others: 16 hex digits of the SHA-256 of its JSON, keys sorted, without space. What is no JSON has
// the tag of null.
func SpecTag(spec json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(spec))
	d.UseNumber()
	if d.Decode(&v) != nil {
		v = nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("api: what was JSON is none: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// What becomes of a setting.
const (
	SettingAdded   = "add"
	SettingChanged = "change"
	SettingRemoved = "remove"
)

// SettingChange is one difference.
type SettingChange struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Change string          `json:"change"`         // add, change, remove
	Keys   []string        `json:"keys,omitempty"` // of a change: the keys that differ
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// AppliedSettings is what was done, or of a plan: what would be.
type AppliedSettings struct {
	Version uint64          `json:"version"` // as it is now
	Changes []SettingChange `json:"changes"`
	Same    int             `json:"same"` // settings that were asked for and that there were already
	Left    int             `json:"left"` // settings that were not asked for, and stay
}

// SetSetting makes or replaces one setting.
type SetSetting struct {
	Spec json.RawMessage `json:"spec"`
	// Seen is the tag (SpecTag) of its spec as who asks has seen it, or none: nothing is changed when it is otherwise by now.
	// Empty: whatever it is.
	Seen string `json:"seen,omitempty"`
}

// Server is a server of the settings with the databases that were found on it.
type Server struct {
	Name      string          `json:"name"`
	Looked    *time.Time      `json:"looked,omitempty"`  // when it was asked last
	By        string          `json:"by,omitempty"`      // the node that asked
	Problem   string          `json:"problem,omitempty"` // why it did not answer
	Since     *time.Time      `json:"since,omitempty"`   // it does not answer
	Databases []FoundDatabase `json:"databases"`
}

// FoundDatabase is a database that was found on a server.
type FoundDatabase struct {
	Name   string     `json:"name"`   // what commands and tasks call it
	DBName string     `json:"dbname"` // what the server calls it
	Since  time.Time  `json:"since"`  // when it was seen first
	Gone   *time.Time `json:"gone,omitempty"`
}

// Where a database is from.
const (
	FromFile     = "file"     // of the node that answers
	FromSettings = "settings" // of the group
	FromServer   = "server"   // found on one
)

// Database is one that the node that answers knows.
type Database struct {
	Name      string     `json:"name"`
	From      string     `json:"from"`
	Server    string     `json:"server,omitempty"` // on which it was found
	DBName    string     `json:"dbname,omitempty"`
	Labels    []string   `json:"labels"`
	Needs     []string   `json:"needs"`
	MaxDumps  int        `json:"max_dumps,omitempty"`
	RPOMS     int64      `json:"rpo_ms"`
	Scratch   bool       `json:"scratch,omitempty"`
	Schedules []string   `json:"schedules"`
	Retained  bool       `json:"retained"` // something is let go at some time
	Gone      *time.Time `json:"gone,omitempty"`
}

// SettingPath is the path of one setting.
func SettingPath(kind, name string) string {
	return PathSettings + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name)
}

// Settings are those of the group.
func (c *Client) Settings(ctx context.Context) (Settings, error) {
	return Get[Settings](ctx, c, PathSettings)
}

// PlanSettings tells what ApplySettings would do.
func (c *Client) PlanSettings(ctx context.Context, r ApplySettings) (AppliedSettings, error) {
	return post[AppliedSettings](ctx, c, PathSettings+"/plan", r)
}

// ApplySettings has the group have these settings.
func (c *Client) ApplySettings(ctx context.Context, r ApplySettings) (AppliedSettings, error) {
	return post[AppliedSettings](ctx, c, PathSettings, r)
}

// SetSetting makes or replaces one setting.
func (c *Client) SetSetting(ctx context.Context, s Setting) (AppliedSettings, error) {
	return post[AppliedSettings](ctx, c, SettingPath(s.Kind, s.Name), SetSetting{Spec: s.Spec})
}

// RemoveSetting removes one setting. Backups stay.
func (c *Client) RemoveSetting(ctx context.Context, kind, name string) (Ended, error) {
	return call[Ended](ctx, c, http.MethodDelete, SettingPath(kind, name))
}

// Servers are those of the settings.
func (c *Client) Servers(ctx context.Context) ([]Server, error) {
	return Get[[]Server](ctx, c, PathServers)
}

// LookAtServer has a server be asked for its databases soon.
func (c *Client) LookAtServer(ctx context.Context, name string) (Server, error) {
	return post[Server](ctx, c, PathServers+"/"+url.PathEscape(name)+"/look", struct{}{})
}

// Databases are those that the node knows.
func (c *Client) Databases(ctx context.Context) ([]Database, error) {
	return Get[[]Database](ctx, c, PathDatabases)
}

// ForgetDatabase has the group expect nothing more of a database that is gone from its server. Its backups stay.
func (c *Client) ForgetDatabase(ctx context.Context, name string) (Ended, error) {
	return call[Ended](ctx, c, http.MethodDelete, PathDatabases+"/"+url.PathEscape(name))
}
