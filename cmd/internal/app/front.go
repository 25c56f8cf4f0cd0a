package app

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/admin"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/web"
)

// openAdmin answers the API on the socket, and where that is configured on a port, where the pages are, too. They are not at
// the socket: who forwards it to a browser would be an admin whom any other page in that browser could send.
func (a *App) openAdmin() error {
	handler := admin.NewHandler(a.backend())
	served := a.probes()
	served.Handle("/", handler)
	socket := admin.NewServer(a.cfg.Admin.Socket, served, a.log)
	if err := socket.Start(); err != nil {
		return err
	}
	a.onStop("admin socket", func(ctx context.Context) error { socket.Stop(ctx); return nil })
	if a.cfg.Admin.Bind == "" {
		return nil
	}
	var secure *tls.Config
	if certificate, key := a.cfg.AdminCertificate(); certificate != "" {
		var err error
		if secure, err = admin.TLS(certificate, key); err != nil {
			return err
		}
	}
	pages := web.New(web.Config{API: handler, Group: a.cfg.Group, Node: a.cfg.Node, Now: a.clock.Now, Logger: a.log})
	open := a.probes()
	open.Handle(api.Base+"/", handler)
	open.Handle("/", pages)
	front := admin.Front{Handler: onPort(open), Accounts: a.accounts, Hosts: a.cfg.AdminHosts(), Logger: a.log, Refuse: pages.Refuse}
	port := admin.NewNetServer(a.cfg.Admin.Bind, secure, front, a.log)
	if err := port.Start(); err != nil {
		return err
	}
	a.onStop("admin port", func(ctx context.Context) error { port.Stop(ctx); return nil })
	a.log.Info("app: the page and the API are served", "address", port.Address(), "tls", secure != nil)
	return nil
}

// onPort is what the socket serves, for everybody: the state of the node's own process is no secret, its metrics are for
// those who may look.
func onPort(served http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/metrics") {
			var refused *api.Error
			if errors.As(admin.Allow(r, api.RoleViewer, false), &refused) {
				admin.SendProblem(w, refused)
				return
			}
		}
		served.ServeHTTP(w, r)
	})
}

// copyTrail copies the audit trail to this node's disk, and to the system's log where that is wanted, as it grows. A copy
// that cannot be made stops no backup: it is among the problems of the status.
func (a *App) copyTrail(ctx context.Context) {
	say, err := systemLog(a.cfg.Audit.Syslog)
	if err != nil {
		a.noteCopy(err)
	}
	c, err := audit.OpenCopy(a.trail, a.cfg.AuditFile(), say)
	if err != nil {
		a.noteCopy(err)
		return
	}
	defer c.Close()
	for {
		changed := a.group.Cache().Written(keptComponent)
		a.noteCopy(c.CatchUp())
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// noteCopy notes what is wrong with the copy of the audit trail, and says it once.
func (a *App) noteCopy(err error) {
	a.mu.Lock()
	was := a.uncopied
	a.uncopied = err
	a.mu.Unlock()
	switch {
	case err != nil && was == nil:
		a.log.Error("app: the audit trail is not copied to this node's disk", "error", err)
	case err == nil && was != nil:
		a.log.Info("app: the audit trail is copied to this node's disk again")
	}
}

// copyProblem is what to tell of the copy of the audit trail; nil when all is well.
func (a *App) copyProblem() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.uncopied
}
