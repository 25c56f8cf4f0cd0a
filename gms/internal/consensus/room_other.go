//go:build !linux

package consensus

import "os"

// allocate gives an empty file so many bytes that are its own.
func allocate(f *os.File, size int64) error { return zeros(f, size) }
