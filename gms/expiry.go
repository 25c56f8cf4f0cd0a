package gms

import (
	"context"
	"maps"
	"time"
)

const (
	expiryLook = time.Hour
	expirySoon = 30 * 24 * time.Hour
	expirySay  = 24 * time.Hour // between two warnings
)

// CertificateUntil is when the certificate expires that this node shows now; false without one.
func (g *Group) CertificateUntil() (time.Time, bool) {
	g.starting.Lock()
	k := g.keeper
	g.starting.Unlock()
	if k == nil {
		return time.Time{}, false
	}
	return k.Material().Until(), true
}

// Distrusted are the nodes whose certificates did not count lately, when they were dialled or came, each with why, in a
// sentence for people: expired, most often. A node whose certificate was renewed is not in it any more once it was met.
func (g *Group) Distrusted() map[string]error {
	g.starting.Lock()
	d, s := g.dialer, g.server
	g.starting.Unlock()
	out := make(map[string]error)
	if s != nil {
		maps.Copy(out, s.Distrusted())
	}
	if d != nil {
		maps.Copy(out, d.Distrusted())
	}
	return out
}

// watchCertificate warns once a day of a certificate that will expire, until ctx ends. That one which is not renewed in time
// cuts the node off at its next connections, and both sides say so then.
func (g *Group) watchCertificate(ctx context.Context) {
	var said time.Time
	for g.keeper != nil {
		until := g.keeper.Material().Until()
		if left := time.Until(until); left < expirySoon && time.Since(said) >= expirySay {
			said = time.Now()
			what := "gms: the certificate of this node expires"
			if left <= 0 {
				what = "gms: the certificate of this node has expired: no other node believes it any more"
			}
			g.log.Warn(what, "until", until.UTC().Format(time.DateTime),
				"remedy", "`fencepost certs renew --node "+g.cfg.Node+"`; the node takes up the new one by itself")
		}
		if !pause(ctx, nil, expiryLook) {
			return
		}
	}
}
