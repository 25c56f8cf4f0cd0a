package gms

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// A renewal that takes the detour through another member (PROTOCOL.md 5) comes to the leader from a node that is not its
// run's. So its run signs it: with its node key, over
//
//	0   9  "FPRENEW1\n"
//	9  16  cluster id
//	25  n  the Renewal, encoded
//
// A repeated one counts once: see leading.decide.
const renewalMagic = "FPRENEW1\n"

func renewalText(cluster, renewal []byte) []byte {
	return slices.Concat([]byte(renewalMagic), cluster, renewal)
}

// sealed is a renewal of this node's run as another member may pass it on.
func (g *Group) sealed(r *wire.Renewal) (*wire.RenewRequest, error) {
	encoded, err := proto.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a renewal: %w", err)
	}
	return &wire.RenewRequest{Renewal: encoded, Signature: ed25519.Sign(g.home.key, renewalText(g.cluster(), encoded))}, nil
}

// unsealed reads a renewal that a node has brought: one of its own run, or one that the run has signed.
func (g *Group) unsealed(node string, r *wire.RenewRequest) (*wire.Renewal, error) {
	renewal := &wire.Renewal{}
	if err := proto.Unmarshal(r.GetRenewal(), renewal); err != nil {
		return nil, errMalformed
	}
	id, ok := state.RunIDOf(renewal.GetRun())
	if !ok {
		return nil, errMalformed
	}
	if g.speaksFor(node, id) {
		return renewal, nil
	}
	var key []byte
	g.rep.read(func(m *state.Machine) {
		run, _ := m.Run(id)
		key = run.Open.GetNodeKey()
	})
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, renewalText(g.cluster(), r.GetRenewal()), r.GetSignature()) {
		return nil, errNotSender
	}
	return renewal, nil
}
