package configs

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	nodeName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	itemName   = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)
)

// Validate checks everything that can be known without touching the machine. The error
// is an *Error with all problems.
func (c *Config) Validate() error {
	var ps problems
	c.checkIdentity(&ps)
	c.checkForming(&ps)
	c.checkPorts(&ps)
	c.checkAdmin(&ps)
	c.checkSecurity(&ps)
	c.checkLimits(&ps)
	if problem := c.Ledger.DSN.problem(); c.Ledger.DSN.Given() && problem != "" {
		ps.add("ledger.dsn", "%s", problem)
	}
	c.checkProcessors(&ps)
	c.lists().check(&ps)
	c.checkRequired(&ps)
	c.checkComponents(&ps)
	c.checkNotify(&ps)
	return ps.err("")
}

func (c *Config) checkIdentity(ps *problems) {
	if c.Node == "" {
		ps.add("node", "is missing: give this node a name, such as n1")
	} else if !nodeName.MatchString(c.Node) {
		ps.add("node", "is %q, want 1 to 63 of a-z, 0-9 and -, which is not at an end", c.Node)
	}
	if !nodeName.MatchString(c.Group) {
		ps.add("group", "is %q, want 1 to 63 of a-z, 0-9 and -, which is not at an end", c.Group)
	}
	checkAbsolute(ps, "home", c.Home)
	checkLabels(ps, "labels", c.Labels)
	checkOneOf(ps, "role", c.Role, RoleCore, RoleSpectator, RoleWitness, RoleWatchdog)
	checkOneOf(ps, "profile", c.Profile, ProfileLocal, ProfileLAN, ProfileWAN, ProfilePatient)
	checkOneOf(ps, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	checkOneOf(ps, "log.format", c.Log.Format, "text", "json")
}

func (c *Config) checkForming(ps *problems) {
	for i, name := range c.Bootstrap {
		at := fmt.Sprintf("bootstrap[%d]", i)
		if !nodeName.MatchString(name) {
			ps.add(at, "is %q, want the name of a node: 1 to 63 of a-z, 0-9 and -", name)
		}
		if first := slices.Index(c.Bootstrap, name); first < i {
			ps.add(at, "is %q, as bootstrap[%d] is: name each node once", name, first)
		}
	}
	if len(c.Bootstrap) > 0 && len(c.Seeds) == 0 && !slices.Contains(c.Bootstrap, c.Node) {
		ps.add("bootstrap", "does not name this node %q, and there are no seeds to join: add the name or a seed", c.Node)
	}
	if (c.Role == RoleSpectator || c.Role == RoleWatchdog) && slices.Contains(c.BootstrapNodes(), c.Node) {
		ps.add("role", "is %s, which cannot found a group: take %q out of bootstrap, and give seeds to join", c.Role, c.Node)
	}
	for i, seed := range c.Seeds {
		at := fmt.Sprintf("seeds[%d]", i)
		if _, port, ok := splitAddress(seed); !ok || port == 0 {
			ps.add(at, "is %q, want host:port with a port from 1 to 65535", seed)
		}
		if first := slices.Index(c.Seeds, seed); first < i {
			ps.add(at, "is %q, as seeds[%d] is: name each address once", seed, first)
		}
	}
}

func (c *Config) checkPorts(ps *problems) {
	c.checkPort(ps, "gossip", c.Gossip)
	c.checkPort(ps, "cluster", c.Cluster)
	if _, port, ok := splitAddress(c.Gossip.Bind); ok && port != 0 && c.Gossip.Bind == c.Cluster.Bind {
		ps.add("cluster.bind", "is %q, as gossip.bind is: they need a port each", c.Cluster.Bind)
	}
}

func (c *Config) checkPort(ps *problems, section string, p Port) {
	c.checkAddress(ps, section+".bind", p.Bind, 0)
	if p.Advertise == "" {
		return
	}
	c.checkAddress(ps, section+".advertise", p.Advertise, 1)
	if host, _, ok := splitAddress(p.Advertise); ok {
		if ip, err := netip.ParseAddr(host); err == nil && !ip.IsGlobalUnicast() && !ip.IsLoopback() {
			ps.add(section+".advertise", "is %q, which others cannot dial: give an address of this machine", p.Advertise)
		}
	}
}

// checkAddress wants an IP and a port, and beyond loopback what keeps strangers out.
func (c *Config) checkAddress(ps *problems, path, address string, minPort int) {
	host, port, ok := splitAddress(address)
	switch {
	case !ok || port < minPort || !isIP(host):
		ps.add(path, "is %q, want IP:port with a port from %d to 65535, such as 127.0.0.1:7946 or [fd00::1]:7946", address, minPort)
	case !loopback(host) && !c.Security.complete():
		ps.add(path, "is %q, beyond loopback: that needs certificates and a gossip key in the section security: `fencepost init` writes them, `fencepost certs` makes certificates", address)
	}
}

func isIP(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Zone() == ""
}

func splitAddress(address string) (host string, port int, ok bool) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return "", 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return host, int(n), err == nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func (c *Config) checkLimits(ps *problems) {
	checkRange(ps, "raft.voters", c.Raft.Voters, 1, 7)
	if c.Raft.Voters >= 1 && c.Raft.Voters <= 7 && c.Raft.Voters%2 == 0 {
		ps.add("raft.voters", "is %d, want an odd number from 1 to 7: an even one survives no more than the odd one below it", c.Raft.Voters)
	}
	checkRange(ps, "raft.followers", c.Raft.Followers, 1, 256)
	checkDuration(ps, "raft.reap_after", c.Raft.ReapAfter, time.Minute, 10*365*24*time.Hour)
	checkRange(ps, "raft.snapshot_threshold", c.Raft.SnapshotThreshold, 64, 1<<20)
	checkOneOf(ps, "recovery.selector", c.Recovery.Selector, SelectorRendezvous, SelectorSuccessor)
	checkDuration(ps, "recovery.fence_ttl", c.Recovery.FenceTTL, time.Second, time.Hour)
	checkRange(ps, "recovery.max_attempts", c.Recovery.MaxAttempts, 1, 100)
	checkRange(ps, "backup.max_concurrent", c.Backup.MaxConcurrent, 1, 64)
	checkRange(ps, "backup.max_attempts", c.Backup.MaxAttempts, 1, 100)
	checkOneOf(ps, "backup.on_failure", c.Backup.OnFailure, Rerun, Revert)
	if c.Backup.TimeLimit != 0 {
		checkDuration(ps, "backup.time_limit", c.Backup.TimeLimit, time.Minute, 365*24*time.Hour)
	}
	checkDuration(ps, "backup.stall_after", c.Backup.StallAfter, 10*time.Second, 24*time.Hour)
	checkDuration(ps, "backup.delete_delay", c.Backup.DeleteDelay, 0, 365*24*time.Hour)
	if c.Backup.RateLimit < 0 {
		ps.add("backup.rate_limit", "is %d, want 0 (no limit) or more bytes per second", int64(c.Backup.RateLimit))
	}
	checkDuration(ps, "restore.keep_old", c.Restore.KeepOld, 0, 365*24*time.Hour)
	checkDuration(ps, "restore.start_within", c.Restore.StartWithin, time.Second, 7*24*time.Hour)
	checkRange(ps, "restore.jobs", c.Restore.Jobs, 0, 32)
	checkDuration(ps, "stop.grace", c.Stop.Grace, 0, time.Hour)
}

func checkRange(ps *problems, path string, value, low, high int) {
	if value < low || value > high {
		ps.add(path, "is %d, want %d to %d", value, low, high)
	}
}

func checkDuration(ps *problems, path string, value, low, high time.Duration) {
	if value < low || value > high {
		ps.add(path, "is %s, want %s to %s", value, low, high)
	}
}

func checkOneOf[T ~string](ps *problems, path string, value T, allowed ...T) {
	if slices.Contains(allowed, value) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	ps.add(path, "is %q, want one of %s", value, strings.Join(words, ", "))
}

func checkAbsolute(ps *problems, path, value string) {
	switch {
	case value == "":
		ps.add(path, "is missing: want an absolute path")
	case !filepath.IsAbs(value):
		ps.add(path, "is %q, want an absolute path: begin with /", value)
	}
}
