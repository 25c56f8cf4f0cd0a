package gms

import (
	"context"
	"time"
)

const (
	expiryLook = time.Hour
	expirySoon = 14 * 24 * time.Hour
	expirySay  = 24 * time.Hour // between two warnings
)

// watchCertificate warns once a day of a certificate that will expire, until ctx ends. That one which is not renewed in time
// cuts the node off at its next connections, and both sides say so then.
func (g *Group) watchCertificate(ctx context.Context) {
	var said time.Time
	for g.keeper != nil {
		until := g.keeper.Material().Until()
		if left := time.Until(until); left < expirySoon && time.Since(said) >= expirySay {
			said = time.Now()
			g.log.Warn("gms: the certificate of this node expires", "until", until.UTC().Format(time.DateTime),
				"remedy", "`fencepost certs renew --node "+g.cfg.Node+"`; the node takes up the new one by itself")
		}
		if !pause(ctx, nil, expiryLook) {
			return
		}
	}
}
