//go:build !unix

package gms

// syncDir does nothing: this system has no way to ask for it.
func syncDir(string) error { return nil }
