//go:build !chaos

package app

import "time"

// wall is this node's clock.
func wall() time.Time { return time.Now() }
