package app

import (
	"context"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery/warden"
)

// announcer brings the warden's obituaries to the members that the node's home remembers.
type announcer struct{ cfg configs.Config }

var _ warden.Announcer = announcer{}

// Announce implements warden.Announcer.
func (a announcer) Announce(ctx context.Context, obituary []byte) error {
	return gms.Announce(ctx, gms.Announcement{Home: a.cfg.Home, Group: a.cfg.Group, Node: a.cfg.Node, Obituary: obituary})
}
