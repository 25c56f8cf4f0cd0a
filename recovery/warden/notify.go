package warden

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Supervisor is who watches the warden itself: a service manager that speaks systemd's protocol. The zero value is nobody.
type Supervisor struct {
	Socket   string        // address of a datagram socket; "@" begins an abstract one
	Watchdog time.Duration // it expects a sign of life within that time; 0: none
}

// supervisorVariables are for the warden and not for its node.
var supervisorVariables = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}

// SupervisorFromEnv reads NOTIFY_SOCKET and WATCHDOG_USEC; WATCHDOG_PID, when set, must be pid.
func SupervisorFromEnv(getenv func(string) string, pid int) Supervisor {
	s := Supervisor{Socket: getenv("NOTIFY_SOCKET")}
	micros, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	if of := getenv("WATCHDOG_PID"); err == nil && micros > 0 && (of == "" || of == strconv.Itoa(pid)) {
		s.Watchdog = time.Duration(micros) * time.Microsecond
	}
	return s
}

// tell sends lines such as READY=1.
func (s Supervisor) tell(lines ...string) error {
	if s.Socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.Socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // never wait for who watches us
	if _, err := c.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	return nil
}
