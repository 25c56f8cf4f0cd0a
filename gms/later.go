//go:build !fencepost_next

package gms

// later gives the commands of a later version; see later_next.go.
func (l *leading) later() {}
