//go:build !linux

package admin

import "net"

// peer is who is at the other end of a unix socket: this system is not asked.
func peer(net.Conn) string { return "unknown" }
