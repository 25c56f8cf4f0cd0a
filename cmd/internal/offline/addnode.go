package offline

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms/certs"
)

// AddOptions say which node a group gets.
type AddOptions struct {
	Node  string        // its name, or name=IP; without an address it is on the machine of Like
	Like  string        // configuration file of a node that is in the group: all but names and addresses is taken from it
	Dir   string        // has the authority's ca.pem and ca.key, and gets what is written
	Valid time.Duration // of the certificate; 0: NodeValid
}

// AddedNode is what was written for a node.
type AddedNode struct {
	InitFile
	Seeds []string `json:"seeds"`
}

// AddNode writes a configuration, a certificate and its key for a node that joins a group which is there. It overwrites
// nothing. An error that comes from wrong options is a *configs.Error or names the option; nothing has been written then.
func AddNode(o AddOptions) (AddedNode, error) {
	text, err := os.ReadFile(o.Like)
	if err != nil {
		return AddedNode{}, fmt.Errorf("--like: read the configuration of a node: %w", err)
	}
	like, err := configs.LoadWith(o.Like, nil)
	if err != nil {
		return AddedNode{}, err
	}
	if !like.Security.Certified() || like.Security.GossipKeyFile == "" {
		return AddedNode{}, fmt.Errorf("--like %s: it has no certificates and gossip keys: the group is open to anybody on its machine, and a node of it needs no more than a copy of this file with names and ports of its own", o.Like)
	}
	c, err := o.joining(*like)
	if err != nil {
		return AddedNode{}, err
	}
	if err := c.Validate(); err != nil {
		return AddedNode{}, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return AddedNode{}, fmt.Errorf("find the directory: %w", err)
	}
	ca, err := openAuthority(dir)
	if err != nil {
		return AddedNode{}, err
	}
	pair, err := ca.Issue(certs.Name{Group: c.Group, Node: c.Node}, cmp.Or(o.Valid, NodeValid))
	if err != nil {
		return AddedNode{}, err
	}
	made := AddedNode{
		InitFile: InitFile{
			Node: c.Node, Config: filepath.Join(dir, c.Node+".yaml"), Home: c.Home, Socket: c.Admin.Socket,
			Gossip: cmp.Or(c.Gossip.Advertise, c.Gossip.Bind), Cluster: cmp.Or(c.Cluster.Advertise, c.Cluster.Bind), Admin: c.Admin.Bind,
			Secrets: []string{c.Security.CertificateFile, c.Security.KeyFile, c.Security.CAFile, c.Security.GossipKeyFile},
		},
		Seeds: c.Seeds,
	}
	file, err := rewritten(string(text), *like, c)
	if err != nil {
		return AddedNode{}, fmt.Errorf("--like %s: %w", o.Like, err)
	}
	return made, writeAll(dir, []output{
		{filepath.Join(dir, c.Node+certSuffix), string(pair.Certificate)}, {filepath.Join(dir, c.Node+keySuffix), string(pair.Key)},
		{made.Config, file},
	})
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// joining is the configuration of the new node: like's, with a name, addresses and files of its own.
func (o AddOptions) joining(like configs.Config) (configs.Config, error) {
	name, ip, given := strings.Cut(o.Node, "=")
	switch {
	case name == like.Node:
		return like, fmt.Errorf("%s is the node of --like: a new one needs a name of its own", name)
	case given:
		if _, err := netip.ParseAddr(ip); err != nil {
			return like, fmt.Errorf("%s: %q is not an IP address: want name=IP, such as n4=10.0.0.4", o.Node, ip)
		}
	}
	own := cmp.Or(like.Gossip.Advertise, like.Gossip.Bind)
	host, port, err := hostPort(own)
	if err != nil {
		return like, err
	}
	if parsed, err := netip.ParseAddr(host); err == nil && parsed.IsUnspecified() {
		return like, fmt.Errorf("gossip.advertise: %s listens on all addresses and tells none: the new node would not know where to find it: name a node's file that does", own)
	}
	seeds := append(slices.Clone(like.Seeds), own)
	if ip = cmp.Or(ip, host); ip == "" {
		return like, fmt.Errorf("%s: which address? want name=IP", o.Node)
	}
	shift := 0
	for _, s := range seeds { // ports that no other node of that address has
		if h, p, err := hostPort(s); err == nil && h == ip {
			shift = max(shift, p-port+portStep)
		}
	}
	c := like
	c.Node, c.Bootstrap = name, []string{}
	c.Seeds = slices.Compact(slices.Sorted(slices.Values(seeds)))
	for _, p := range []*string{&c.Gossip.Bind, &c.Gossip.Advertise, &c.Cluster.Bind, &c.Cluster.Advertise, &c.Admin.Bind} {
		if *p, err = moved(*p, ip, shift); err != nil {
			return c, err
		}
	}
	for _, p := range []*string{&c.Home, &c.Admin.Socket, &c.Security.CertificateFile, &c.Security.KeyFile} {
		*p = renamed(*p, like.Node, name)
	}
	return c, nil
}

func hostPort(address string) (string, int, error) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("read the address of a node: %w", err)
	}
	port, err := strconv.Atoi(digits)
	return host, port, err
}

// moved is an address on another machine; one that means all addresses of a machine keeps meaning them.
func moved(address, ip string, shift int) (string, error) {
	if address == "" {
		return "", nil
	}
	host, port, err := hostPort(address)
	if err != nil {
		return "", err
	}
	if parsed, err := netip.ParseAddr(host); err != nil || !parsed.IsUnspecified() {
		host = ip
	}
	return net.JoinHostPort(host, strconv.Itoa(port+shift)), nil
}

// renamed is a path with the name of a node in its last part exchanged.
func renamed(path, from, to string) string {
	dir, base := filepath.Split(path)
	if base != from && !strings.HasPrefix(base, from+".") {
		return path
	}
	return dir + to + strings.TrimPrefix(base, from)
}

// rewritten is the text of like's file with what is the new node's own in it. All else, comments included, stays as it is.
// It fails for a file whose form it does not understand, rather than to write one that says something else.
func rewritten(text string, like, c configs.Config) (string, error) {
	t := strings.Split(text, "\n")
	for _, s := range []struct{ section, key, was, is string }{
		{"", "node", quote(like.Node), quote(c.Node)}, {"", "home", quote(like.Home), quote(c.Home)},
		{"", "bootstrap", "", "[]"}, {"", "seeds", "", "[" + quoteAll(c.Seeds) + "]"},
		{"gossip", "bind", quote(like.Gossip.Bind), quote(c.Gossip.Bind)},
		{"gossip", "advertise", quote(like.Gossip.Advertise), quote(c.Gossip.Advertise)},
		{"cluster", "bind", quote(like.Cluster.Bind), quote(c.Cluster.Bind)},
		{"cluster", "advertise", quote(like.Cluster.Advertise), quote(c.Cluster.Advertise)},
		{"security", "certificate_file", quote(like.Security.CertificateFile), quote(c.Security.CertificateFile)},
		{"security", "key_file", quote(like.Security.KeyFile), quote(c.Security.KeyFile)},
		{"admin", "socket", quote(like.Admin.Socket), quote(c.Admin.Socket)}, {"admin", "bind", quote(like.Admin.Bind), quote(c.Admin.Bind)},
	} {
		if s.was != s.is {
			t = setKey(t, s.section, s.key, s.is)
		}
	}
	out := strings.Join(t, "\n")
	back, err := loadText(out)
	if err != nil || !reflect.DeepEqual(*back, c) {
		return "", errors.Join(errors.New("its form is not understood: write each section on lines of its own, as `fencepost init` does"), err)
	}
	return out, nil
}

// loadText reads a configuration that is in no file yet.
func loadText(text string) (*configs.Config, error) {
	f, err := os.CreateTemp("", "fencepost-*.yaml") // 0600: it may hold passwords
	if err != nil {
		return nil, fmt.Errorf("check the configuration: %w", err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	var c *configs.Config
	if err == nil {
		c, err = configs.LoadWith(f.Name(), nil)
	}
	return c, errors.Join(err, os.Remove(f.Name()))
}

// setKey gives a key of a section, or of the file itself, another value; one that is not there is added. It knows files whose
// keys are on lines of their own.
func setKey(lines []string, section, key, value string) []string {
	from, to, indent := 0, len(lines), ""
	if section != "" {
		if from, to = block(lines, 0, len(lines), section); from < 0 {
			return append(lines, section+":", "  "+key+": "+value, "")
		}
		from, indent = from+1, "  "
		for _, l := range lines[from:to] {
			if body := strings.TrimLeft(l, " "); body != "" && body[0] != '#' {
				indent = l[:len(l)-len(body)]
				break
			}
		}
	}
	entry := indent + key + ": " + value
	at, end := block(lines, from, to, indent+key)
	if at < 0 {
		return slices.Insert(lines, from, entry)
	}
	return slices.Replace(lines, at, end, entry)
}

// block finds the lines of a key, with all that is indented deeper; -1 when there is none.
func block(lines []string, from, to int, key string) (at, end int) {
	indent := len(key) - len(strings.TrimLeft(key, " "))
	for i := from; i < to; i++ {
		if !strings.HasPrefix(lines[i], key+":") {
			continue
		}
		for end = i + 1; end < to; end++ {
			body := strings.TrimLeft(lines[end], " ")
			if deep := len(lines[end]) - len(body); body == "" || body[0] == '#' || deep < indent || deep == indent && body[0] != '-' {
				break
			}
		}
		return i, end
	}
	return -1, -1
}
