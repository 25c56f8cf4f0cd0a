//go:build !linux

package local

// childMain has children to play on Linux only.
func childMain() {}
