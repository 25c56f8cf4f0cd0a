package app

import (
	"errors"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/gms"
)

// awaitRoom waits until there is room on the disk of a home for a node to run, and says so once. It is called before anything
// is opened, and beat again and again, so that nobody takes the node for one that hangs. Other errors are for the start to tell.
func awaitRoom(home string, log *slog.Logger, beat func()) {
	for waited := false; ; waited = true {
		err := gms.KeepRoom(home)
		if !errors.Is(err, gms.ErrDiskFull) {
			if waited {
				log.Info("app: there is room on the disk of the home again: the node starts", "home", home)
			}
			return
		}
		if !waited {
			log.Error("app: the disk of the home is full: the node starts when there is room", "home", home, "error", err)
		}
		beat()
		time.Sleep(beatEvery)
	}
}
