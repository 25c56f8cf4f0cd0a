package api

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Tried is what became of a try of a database or a storage, by the node that answers.
type Tried struct {
	Name    string    `json:"name"`
	Node    string    `json:"node"`
	Good    bool      `json:"good"`
	Found   string    `json:"found"` // in one sentence
	Hint    string    `json:"hint,omitempty"`
	Steps   []TryStep `json:"steps"`   // of a storage
	Left    []string  `json:"left"`    // objects that could not be removed again
	Skipped bool      `json:"skipped"` // it cannot be tried so; Found says why
}

// TryStep is one thing that was tried.
type TryStep struct {
	Step    string `json:"step"`
	TookMS  int64  `json:"took_ms"`
	Problem string `json:"problem,omitempty"`
}

// Manifest is what lies beside a backup in a storage: its own description, and its commit.
type Manifest struct {
	Backup   string          `json:"backup"`
	Token    uint64          `json:"token"`
	Storage  string          `json:"storage"`
	Object   string          `json:"object"` // its path in the storage
	Manifest json.RawMessage `json:"manifest"`
}

// triedWithin bounds what a try may take.
const triedWithin = 2 * time.Minute

// ManifestPath is the path of the manifest of a backup as it lies in a storage; "" = the first that has a copy.
func ManifestPath(backup, storage string) string {
	q := url.Values{}
	setText(q, "storage", storage)
	return withQuery(BackupPath(backup)+"/manifest", q)
}

// TryDatabase has the node begin a dump of a database, and end it again.
func (c *Client) TryDatabase(ctx context.Context, name string) (Tried, error) {
	return postWithin[Tried](ctx, c, PathDatabases+"/"+url.PathEscape(name)+"/test", struct{}{}, triedWithin)
}

// TryStorage has the node write, read, list and delete in a storage.
func (c *Client) TryStorage(ctx context.Context, name string) (Tried, error) {
	return postWithin[Tried](ctx, c, PathStorages+"/"+url.PathEscape(name)+"/test", struct{}{}, triedWithin)
}

// Manifest reads the manifest of a backup from a storage; "" = from the first that has a copy.
func (c *Client) Manifest(ctx context.Context, backup, storage string) (Manifest, error) {
	return Get[Manifest](ctx, c, ManifestPath(backup, storage))
}
