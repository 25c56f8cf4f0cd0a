//go:build !fencepost_next

package postgres

import "github.com/pressly/goose/v3"

// protocolOf is the protocol that a migration belongs to; see released.
func protocolOf(int64) uint32 { return 1 }

// laterMigrations are those that are not among the files; see later_next.go.
func laterMigrations() []*goose.Migration { return nil }
