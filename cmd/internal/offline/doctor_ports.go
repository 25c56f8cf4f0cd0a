package offline

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/fencepost/fencepost/configs"
)

// dialWithin bounds the connection to a seed.
const dialWithin = 3 * time.Second

// examinePorts looks whether the node's ports can be opened, whether its advertised addresses are this machine's, and
// whether the seeds answer.
func examinePorts(ctx context.Context, c *configs.Config, running bool) []Exam {
	var exams []Exam
	for _, p := range []struct {
		key      string
		port     configs.Port
		networks []string
	}{
		{"gossip", c.Gossip, []string{"tcp", "udp"}},
		{"cluster", c.Cluster, []string{"tcp"}},
	} {
		for _, network := range p.networks {
			exams = append(exams, examinePort(ctx, p.key+".bind", network, p.port.Bind, running))
		}
		if p.port.Advertise != "" {
			exams = append(exams, examineAdvertised(p.key+".advertise", p.port.Advertise))
		}
	}
	for _, s := range c.Seeds {
		exams = append(exams, examineSeed(ctx, s))
	}
	return exams
}

func examinePort(ctx context.Context, key, network, address string, running bool) Exam {
	e := Exam{What: "port", About: key + " " + address + "/" + network, State: ExamOK, Found: "can be opened"}
	if running {
		e.State, e.Found = ExamSkipped, "the running daemon has it"
		return e
	}
	err := listen(ctx, network, address)
	if err != nil {
		e.State, e.Found = ExamFailed, err.Error()
		e.Hint = fmt.Sprintf("ss -lnp | grep :%s tells who has it; or choose another %s", portOf(address), key)
	}
	return e
}

func listen(ctx context.Context, network, address string) error {
	var l net.ListenConfig
	if network == "udp" {
		c, err := l.ListenPacket(ctx, network, address)
		if err != nil {
			return err
		}
		return c.Close()
	}
	c, err := l.Listen(ctx, network, address)
	if err != nil {
		return err
	}
	return c.Close()
}

func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// examineAdvertised looks whether others are told an address of this machine. Behind NAT that is no error; then a broken
// connection is no proof of death.
func examineAdvertised(key, address string) Exam {
	e := Exam{What: "address", About: key + " " + address, State: ExamOK, Found: "is an address of this machine"}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		e.State, e.Found = ExamFailed, err.Error()
		return e
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		e.State, e.Found = ExamSkipped, err.Error()
		return e
	}
	ip := net.ParseIP(host)
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return e
		}
	}
	e.State, e.Found = ExamWarning, "is no address of this machine: behind NAT a death is noticed by silence only"
	e.Hint = "when there is no NAT: ip address shows the right one"
	return e
}

// examineSeed looks whether somebody answers at a seed's address. That it is down is no error: seeds may be this node.
func examineSeed(ctx context.Context, seed string) Exam {
	e := Exam{What: "seed", About: seed, State: ExamOK, Found: "answers"}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", seed)
	if err != nil {
		e.State, e.Found, e.Hint = ExamWarning, err.Error(), "is that node up, and does the firewall let TCP and UDP of that port through?"
		return e
	}
	_ = conn.Close() // nothing was said
	return e
}
