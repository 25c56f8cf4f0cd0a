package app

import (
	"context"
	"errors"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery/warden"
)

// announcer brings the warden's obituaries to the members that the node's home remembers.
type announcer struct{ to *gms.Announcer }

var _ warden.Announcer = announcer{}

func newAnnouncer(cfg configs.Config) announcer {
	return announcer{gms.NewAnnouncer(gms.AnnouncerConfig{
		Home: cfg.Home, Group: cfg.Group, Node: cfg.Node, Certificates: certificates(cfg),
	})}
}

// Announce implements warden.Announcer. That the run is closed already is as good as told.
func (a announcer) Announce(ctx context.Context, obituary []byte) error {
	err := a.to.Announce(ctx, obituary)
	if errors.Is(err, gms.ErrRunClosed) {
		return nil // it left in order, never stood, or the others noticed first
	}
	return err
}
