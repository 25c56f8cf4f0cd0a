package api

import (
	"context"
	"time"
)

// PathUsage is what lies in the storages.
const PathUsage = "/api/v1/usage"

// Usage is what lies where, and how it grows.
type Usage struct {
	Storages  []StorageUsage  `json:"storages"`  // by name
	Databases []DatabaseUsage `json:"databases"` // the largest first
}

// StorageUsage is what lies in one storage, as far as the ledger knows.
type StorageUsage struct {
	Storage string     `json:"storage"`
	Bytes   int64      `json:"bytes"`
	Backups int        `json:"backups"`
	PerDay  int64      `json:"per_day"`        // bytes that it grows by, from the last week; 0 while too little is known
	Free    *int64     `json:"free,omitempty"` // bytes left, where the storage can tell
	Full    *time.Time `json:"full,omitempty"` // when nothing is left if it goes on like that, within ten years
}

// DatabaseUsage is what lies in all storages of one database.
type DatabaseUsage struct {
	Database string `json:"database"`
	Bytes    int64  `json:"bytes"`
	Copies   int    `json:"copies"`
	PerDay   int64  `json:"per_day"`
}

// Usage asks what lies where.
func (c *Client) Usage(ctx context.Context) (Usage, error) { return Get[Usage](ctx, c, PathUsage) }
