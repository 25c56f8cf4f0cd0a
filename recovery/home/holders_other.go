//go:build !linux

package home

// openers cannot be seen here; a drain waits for the locks.
func openers([]string) ([]int, error) { return nil, nil }
