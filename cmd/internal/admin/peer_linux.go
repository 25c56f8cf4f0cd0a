package admin

import (
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// peer is the name of the user at the other end of a unix socket, or the number; unknown when the system does not say.
func peer(c net.Conn) string {
	s, ok := c.(*net.UnixConn)
	if !ok {
		return "unknown"
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return "unknown"
	}
	name := "unknown"
	_ = raw.Control(func(fd uintptr) { // the connection may be gone: then nobody asks
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return
		}
		name = strconv.FormatUint(uint64(cred.Uid), 10)
	})
	if u, err := user.LookupId(name); err == nil {
		return u.Username
	}
	return name
}
