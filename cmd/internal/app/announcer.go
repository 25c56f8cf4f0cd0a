package app

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery/warden"
)

// announcer brings the warden's obituaries to the members that the node's home remembers.
type announcer struct{ cfg configs.Config }

var _ warden.Announcer = announcer{}

// Announce implements warden.Announcer. That the run is closed already is as good as told.
func (a announcer) Announce(ctx context.Context, obituary []byte) error {
	err := gms.Announce(ctx, gms.Announcement{
		Home: a.cfg.Home, Group: a.cfg.Group, Node: a.cfg.Node, Obituary: obituary, Certificates: certificates(a.cfg),
	})
	if errors.Is(err, gms.ErrRunClosed) {
		return nil // it left in order, never stood, or the others noticed first
	}
	return err
}
