package gms

import (
	"context"
	"fmt"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Protocols that this program knows. A group writes one version of all that its members exchange and keep; a program reads its
// own and all older ones, and writes its own and the one before. So the nodes of a group can be upgraded one after the other,
// and the group goes on to write what the older ones read, until FinalizeUpgrade.
const (
	Protocol       = wire.Protocol
	OldestProtocol = wire.Oldest
)

// Protocol is the version that the group writes, as far as this node knows: nothing that came later may be in what this program
// has others read. 0 until the group is formed. Only FinalizeUpgrade changes it, on whichever node.
func (g *Group) Protocol() (protocol uint32) {
	g.rep.read(func(m *state.Machine) {
		if m.Formed() {
			protocol = m.Protocol()
		}
	})
	return protocol
}

// FinalizeUpgrade has the group write the next protocol from here on, and tells which that is. From then on a node whose program
// does not read it is refused; there is no way back. It blocks until that is decided, or ctx ends: ErrBusy, with the node, while a
// member's program does not read it; ErrProtocol when this one is the newest and reads no later one; ErrNoQuorum, ErrUnknown.
func (g *Group) FinalizeUpgrade(ctx context.Context) (uint32, error) {
	const what = "finalize the upgrade"
	if err := g.Sync(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	next := g.Protocol() + 1
	if next > Protocol {
		return 0, fmt.Errorf("%s: %w: the group writes protocol %d, the newest that this program knows", what, ErrProtocol, next-1)
	}
	r, err := g.commands.do(ctx, &wire.Command{Op: &wire.Command_RaiseProtocol{RaiseProtocol: &wire.RaiseProtocol{Protocol: next}}})
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", what, err)
	case r.GetCode() == wire.Code_CODE_BUSY:
		return 0, withHint(fmt.Errorf("%s: %w: %s", what, ErrBusy, r.GetDetail()), "upgrade that node first, or stop it: `fencepost upgrade`")
	}
	if err := g.errorOf(what, r); err != nil {
		return 0, err
	}
	return next, g.Sync(ctx)
}

const newerProgram = "install the version of fencepost that the other nodes run; what this node holds stays as it is"

const notYet = "when all nodes have the new version: `fencepost upgrade finalize`"

const otherProgram = "`fencepost upgrade` on a member says which versions are in use: install a neighbouring one"

// outdated is err for people, when this program does not read what the group writes.
func outdated(err error) error { return withHint(fmt.Errorf("%w: %w", ErrProtocol, err), newerProgram) }

// misfit ends a node that was told by a member that the group writes a protocol which this program does not read, or does not
// write any more.
func (g *Group) misfit(agreed uint32) {
	if agreed > Protocol {
		g.fail(outdated(state.ProtocolError{Protocol: agreed}))
		return
	}
	g.fail(withHint(fmt.Errorf("%w: the group writes protocol %d, and this program %d and %d", ErrProtocol, agreed, OldestProtocol, Protocol),
		fmt.Sprintf("first upgrade all nodes to a version between, with protocol %d, and run `fencepost upgrade finalize`", agreed+1)))
}

// foundingProtocol is what a group is formed with: the newest that all programs read that are here.
func (g *Group) foundingProtocol() uint32 {
	protocol := uint32(Protocol)
	list, _ := g.peers.alive()
	for _, p := range list {
		protocol = min(protocol, max(1, p.meta.GetProtocol()))
	}
	return max(OldestProtocol, protocol)
}

// protocol is what the group writes.
func (r *replica) protocol() (protocol uint32) {
	r.read(func(m *state.Machine) { protocol = m.Protocol() })
	return protocol
}
