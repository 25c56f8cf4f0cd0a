package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/gms/certs"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

const (
	probeEvery = 2 * time.Millisecond
	probeFor   = 250 * time.Millisecond
	probeRead  = 20 * time.Millisecond // for the word that a datagram's port is closed
)

// ProbeTarget is the run whose death is to be proven, and where it listened.
type ProbeTarget struct {
	Node        string
	ClusterAddr string // host:port, TCP
	GossipAddr  string // host:port, TCP and UDP
	Run         []byte
}

// Verdict is what a probe has found out.
type Verdict struct {
	// Refused is the proof: in one and the same round the host refused both TCP ports and said that the UDP port is
	// unreachable. Nothing less sets it.
	Refused bool
	// Alive means that the run itself has answered.
	Alive bool
	// Why tells people, above all why there is no proof.
	Why    string
	Rounds int
	Took   time.Duration
}

// ProbeDial opens connections for a probe; network is "tcp" or "udp", the latter a connected datagram socket. [Network]
// is one.
type ProbeDial interface {
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// Prober is who probes.
type Prober struct {
	Identity Identity
	Network  ProbeDial
	// Certificates are needed where the cluster port has TLS: a hello lies within it, so that nobody else can say that the
	// run lives, and what does not prove itself is a port that is open, which is no evidence of anything. nil means plain.
	Certificates *certs.Keeper
}

// Refused looks, again and again for a quarter of a second, whether the host of a run refuses all three of its ports. Right
// after a kill a dial can still connect, because the kernel takes its time; so what connects must answer a hello with the
// run's id, else the next round decides. A host that does not answer, or cannot be reached, proves nothing.
//
// It is evidence only if the connection to the run had broken before, and for runs that listen on an interface of their
// own host: whoever calls sees to both.
func (p Prober) Refused(ctx context.Context, t ProbeTarget) Verdict {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	start := time.Now()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	v := Verdict{Why: "no round was finished in time"}
	for {
		round := p.probe(ctx, t)
		v.Rounds++
		v.Took = time.Since(start)
		switch {
		case round.all(portRefused):
			v.Refused, v.Why = true, "all three ports are refused"
			return v
		case round.cluster.state == portAlive:
			v.Alive, v.Why = true, "the run answers"
			return v
		case v.Took < probeFor || v.Rounds == 1: // a round that the end cut short tells less than the one before
			v.Why = round.why()
		}
		if round.any(portUnreachable) {
			return v
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return v
		}
	}
}

// portState is what one attempt says of one port.
type portState int

const (
	portSkipped     portState = iota // not tried, since another port has said enough
	portRefused                      // the host says that nobody listens
	portAlive                        // the wanted run answers
	portOpen                         // somebody listens, or still seems to
	portUnreachable                  // the host can not be reached: more rounds are of no use
	portSilent                       // no answer in time, or one that says nothing
)

type port struct {
	name  string
	state portState
	err   error
}

func (p port) String() string {
	what := map[portState]string{
		portSkipped: "not tried", portRefused: "refused", portAlive: "answers", portOpen: "still open",
		portUnreachable: "unreachable", portSilent: "no clear answer",
	}[p.state]
	if p.err != nil && p.state != portRefused {
		return fmt.Sprintf("%s: %s (%v)", p.name, what, p.err)
	}
	return p.name + ": " + what
}

type probeRound struct{ cluster, stream, packet port }

func (r probeRound) all(s portState) bool {
	return r.cluster.state == s && r.stream.state == s && r.packet.state == s
}

func (r probeRound) any(s portState) bool {
	return r.cluster.state == s || r.stream.state == s || r.packet.state == s
}

// why names the first port that is not refused.
func (r probeRound) why() string {
	for _, p := range []port{r.cluster, r.stream, r.packet} {
		if p.state != portRefused {
			return p.String()
		}
	}
	return "all three ports are refused"
}

// probe runs one round; it stops at the first port that is not refused.
func (p Prober) probe(ctx context.Context, t ProbeTarget) probeRound {
	r := probeRound{cluster: port{name: "cluster port"}, stream: port{name: "gossip TCP port"}, packet: port{name: "gossip UDP port"}}
	r.cluster.state, r.cluster.err = p.probeCluster(ctx, t)
	if r.cluster.state != portRefused {
		return r
	}
	r.stream.state, r.stream.err = probeStream(ctx, t.GossipAddr, p.Network)
	if r.stream.state != portRefused {
		return r
	}
	r.packet.state, r.packet.err = probePacket(ctx, t.GossipAddr, p.Network)
	return r
}

// classify reads a failed dial, or a failed use of a datagram socket.
func classify(err error) portState {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return portRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return portUnreachable
	default:
		return portSilent
	}
}

func (p Prober) probeCluster(ctx context.Context, t ProbeTarget) (portState, error) {
	raw, err := p.Network.Dial(ctx, "tcp", t.ClusterAddr)
	if err != nil {
		return classify(err), err
	}
	defer raw.Close()
	conn := raw
	if p.Certificates != nil {
		conn = secureClient(raw, p.Certificates, t.Node)
	}
	answer, err := greet(ctx, conn, p.Identity, wire.Hello_KIND_PROBE)
	switch {
	case err != nil:
		return portOpen, err
	case !bytes.Equal(answer.Run, t.Run):
		return portOpen, errors.New("another run answers")
	default:
		return portAlive, nil
	}
}

func probeStream(ctx context.Context, addr string, dial ProbeDial) (portState, error) {
	conn, err := dial.Dial(ctx, "tcp", addr)
	if err != nil {
		return classify(err), err
	}
	_ = conn.Close() // that it was opened says all
	return portOpen, nil
}

// probePacket sends one byte, which no protocol here takes for a message, and listens for the host's refusal of it.
func probePacket(ctx context.Context, addr string, dial ProbeDial) (portState, error) {
	conn, err := dial.Dial(ctx, "udp", addr)
	if err != nil {
		return classify(err), err
	}
	defer conn.Close()
	end := time.Now().Add(probeRead)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	if err := conn.SetDeadline(end); err != nil {
		return portSilent, err
	}
	if _, err := conn.Write([]byte{0xff}); err != nil {
		return classify(err), err
	}
	_, err = conn.Read(make([]byte, 1))
	switch {
	case err == nil:
		return portOpen, errors.New("something answers")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return portOpen, errors.New("the host does not say that it is closed")
	default:
		return classify(err), err
	}
}
