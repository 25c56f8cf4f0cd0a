package api

import (
	"context"
	"net/url"
	"time"
)

// Paths of what is done with storages and the catalog.
const (
	PathStorages = "/api/v1/storages"
	PathCatalog  = "/api/v1/catalog"
)

// CheckStorage asks for a comparison of a storage with the ledger.
type CheckStorage struct {
	Fix bool `json:"fix,omitempty"` // remove what nothing counts
}

// Finding is one thing that a check found.
type Finding struct {
	Storage string `json:"storage"`
	Kind    string `json:"kind"` // partial, unknown, stray, missing, wrong size, tombstone, kept, foreign, broken
	Backup  string `json:"backup,omitempty"`
	Token   uint64 `json:"token,omitempty"`
	Object  string `json:"object,omitempty"`
	Problem string `json:"problem"`
	Fixable bool   `json:"fixable"`
	Fixed   bool   `json:"fixed"`
}

// RebuildCatalog asks for the ledger to learn what lies in the storages.
type RebuildCatalog struct {
	Storages []string `json:"storages,omitempty"` // empty: all
}

// storageWork bounds what takes as long as a storage has objects.
const storageWork = time.Hour

// CheckStorage compares a storage with the ledger, and with Fix removes what nothing counts. It takes as long as listing the
// storage and reading its manifests do.
func (c *Client) CheckStorage(ctx context.Context, name string, r CheckStorage) ([]Finding, error) {
	return postWithin[[]Finding](ctx, c, PathStorages+"/"+url.PathEscape(name)+"/check", r, storageWork)
}

// RebuildCatalog has the ledger know whole backups of the storages that it does not know, and returns them.
func (c *Client) RebuildCatalog(ctx context.Context, r RebuildCatalog) ([]Backup, error) {
	return postWithin[[]Backup](ctx, c, PathCatalog+"/rebuild", r, storageWork)
}
