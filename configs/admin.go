package configs

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"time"
)

// maxSocket is the longest path of a unix socket on every system we build for.
const maxSocket = 103

// Admin is how people and programs reach the daemon.
type Admin struct {
	// Socket is the absolute path of a unix socket, at most 103 bytes long (a limit of the
	// system). It is made with mode 0600: who can open it may do everything. Default
	// /run/fencepost/fencepost.sock.
	Socket string `yaml:"socket"`
	// Bind is the address (IP:port) of the API and the page. Empty, the default: there is none. Beyond loopback it speaks TLS
	// only.
	Bind string `yaml:"bind"`
	// CertificateFile and KeyFile are the certificate and key of Bind (PEM), absolute paths, both or none; they are read again
	// when they change. None: beyond loopback those of Security; on loopback no TLS.
	CertificateFile string `yaml:"certificate_file"`
	KeyFile         string `yaml:"key_file"`
	// Hosts are names and addresses by which browsers and programs call this node, beside that of Bind, localhost and Node.
	// What calls it otherwise is refused. Default none.
	Hosts []string `yaml:"hosts"`
	// SessionIdle is after how long without a request a log-in in a browser ends, 1m to 24h. Default 30m.
	SessionIdle time.Duration `yaml:"session_idle"`
	// SessionMax is after how long it ends in any case, SessionIdle to 720h. Default 12h.
	SessionMax time.Duration `yaml:"session_max"`
}

// Audit is where this node copies the records of who changed what.
type Audit struct {
	// File is an absolute path; the file only grows. Empty: audit.jsonl in Home.
	File string `yaml:"file"`
	// Syslog sends each record to the system's log, too, as auth.notice; not on windows. Default false.
	Syslog bool `yaml:"syslog"`
}

// AuditFile is where this node copies the audit trail.
func (c *Config) AuditFile() string {
	if c.Audit.File != "" {
		return c.Audit.File
	}
	return filepath.Join(c.Home, "audit.jsonl")
}

// AdminCertificate are the certificate and key of the admin address; empty: it does without TLS.
func (c *Config) AdminCertificate() (certificate, key string) {
	if c.Admin.CertificateFile != "" {
		return c.Admin.CertificateFile, c.Admin.KeyFile
	}
	if host, _, ok := splitAddress(c.Admin.Bind); ok && !loopback(host) {
		return c.Security.CertificateFile, c.Security.KeyFile
	}
	return "", ""
}

// AdminHosts are the names and addresses by which the admin address may be called.
func (c *Config) AdminHosts() []string {
	hosts := append([]string{"localhost", "127.0.0.1", "::1", c.Node}, c.Admin.Hosts...)
	if host, _, ok := splitAddress(c.Admin.Bind); ok {
		hosts = append(hosts, host)
	}
	for _, p := range []Port{c.Gossip, c.Cluster} { // by which others know this machine
		if host, _, ok := splitAddress(p.Advertise); ok {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

var hostName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$`)

func (c *Config) checkAdmin(ps *problems) {
	a := c.Admin
	checkAbsolute(ps, "admin.socket", a.Socket)
	if len(a.Socket) > maxSocket {
		ps.add("admin.socket", "is %d bytes long, at most %d work everywhere: choose a shorter path", len(a.Socket), maxSocket)
	}
	if a.Bind != "" {
		c.checkAdminBind(ps)
	}
	for _, f := range []struct{ path, value, other string }{
		{"admin.certificate_file", a.CertificateFile, a.KeyFile}, {"admin.key_file", a.KeyFile, a.CertificateFile},
	} {
		if f.value != "" && !filepath.IsAbs(f.value) {
			ps.add(f.path, "is %q, want an absolute path: begin with /", f.value)
		}
		if f.value == "" && f.other != "" {
			ps.add(f.path, "is missing: certificate_file and key_file belong together")
		}
	}
	for i, host := range a.Hosts {
		if _, err := netip.ParseAddr(host); err != nil && !hostName.MatchString(host) {
			ps.add(fmt.Sprintf("admin.hosts[%d]", i), "is %q, want the name or the address of a host, without a port", host)
		}
	}
	checkDuration(ps, "admin.session_idle", a.SessionIdle, time.Minute, 24*time.Hour)
	checkDuration(ps, "admin.session_max", a.SessionMax, a.SessionIdle, 720*time.Hour)
	if c.Audit.File != "" {
		checkAbsolute(ps, "audit.file", c.Audit.File)
	}
}

func (c *Config) checkAdminBind(ps *problems) {
	bind := c.Admin.Bind
	host, port, ok := splitAddress(bind)
	switch {
	case !ok || !isIP(host):
		ps.add("admin.bind", "is %q, want IP:port, such as 127.0.0.1:7948 or [fd00::1]:7948", bind)
	case port != 0 && (bind == c.Gossip.Bind || bind == c.Cluster.Bind):
		ps.add("admin.bind", "is %q, as another port of this node is: they need a port each", bind)
	case !loopback(host) && c.Admin.CertificateFile == "" && !c.Security.Certified():
		ps.add("admin.bind", "is %q, beyond loopback: that needs a certificate, in admin.certificate_file or in the section security", bind)
	}
}
