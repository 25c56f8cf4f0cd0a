//go:build !linux

package pgtest

// tempDir returns where a server's directory is made when the caller does not say: "" is the system's temporary directory.
func tempDir(bool) string { return "" }
