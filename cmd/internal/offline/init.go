package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/configs"
)

// DefaultBasePort is the gossip port of the first node.
const DefaultBasePort = 7946

// portStep leaves room for the other ports of a node.
const portStep = 10

// InitOptions say what to write.
type InitOptions struct {
	Nodes     []string // names, or name=IP for all of them; at least one
	Dir       string   // made when missing; relative to the working directory
	BasePort  int      // 1 to 65535; 0: DefaultBasePort
	Group     string   // empty: the default
	Profile   string   // empty: the default
	Databases []string // name=dsn; the dsn may be env:NAME or file:PATH
	Storages  []string // name=path of a local storage, relative to the working directory
}

// InitFile is one node that Init wrote a configuration for.
type InitFile struct {
	Node    string `json:"node"`
	Config  string `json:"config"`
	Home    string `json:"home"`
	Socket  string `json:"socket"`
	Gossip  string `json:"gossip"`
	Cluster string `json:"cluster"`
	Admin   string `json:"admin"` // of the API
	// Secrets are the files that the node's machine needs beside its configuration.
	Secrets []string `json:"secrets"`
}

// plan is one configuration to be written.
type plan struct {
	path   string
	config configs.Config
	dsns   map[string]string // by database: what a DSN would not print
}

// Init writes one configuration per node, the group's authority, a certificate per node and a gossip key, and says which.
// An error that comes from wrong options is a *configs.Error or names the option; nothing has been written then.
func Init(o InitOptions) ([]InitFile, error) {
	plans, err := o.plans()
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		if err := p.config.Validate(); err != nil {
			return nil, err
		}
	}
	dir := filepath.Dir(plans[0].path)
	outputs, err := secrets(dir, plans)
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		outputs = append(outputs, output{p.path, render(p)})
	}
	if err := nothingThere(plans, outputs); err != nil {
		return nil, err
	}
	if err := writeAll(dir, outputs); err != nil {
		return nil, err
	}
	files := make([]InitFile, len(plans))
	for i, p := range plans {
		c := p.config
		files[i] = InitFile{
			c.Node, p.path, c.Home, c.Admin.Socket, c.Gossip.Bind, c.Cluster.Bind, c.Admin.Bind,
			[]string{c.Security.CertificateFile, c.Security.KeyFile, c.Security.CAFile, c.Security.GossipKeyFile},
		}
	}
	return files, nil
}

// nothingThere refuses to overwrite anything.
func nothingThere(plans []plan, outputs []output) error {
	var paths []string
	for _, o := range outputs {
		paths = append(paths, o.path)
	}
	for _, p := range plans {
		paths = append(paths, p.config.Home, p.config.Admin.Socket)
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already: init overwrites nothing: choose another directory: %w", path, fs.ErrExist)
		}
	}
	return nil
}

func (o InitOptions) plans() ([]plan, error) {
	if len(o.Nodes) == 0 {
		return nil, errors.New("no nodes were named: --nodes n1,n2,n3")
	}
	if o.Dir == "" {
		return nil, errors.New("no directory was named: --dir DIR")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory: %w", err)
	}
	if o.BasePort == 0 {
		o.BasePort = DefaultBasePort
	}
	places, err := o.places()
	if err != nil {
		return nil, err
	}
	common := configs.Default()
	for _, p := range places {
		common.Bootstrap = append(common.Bootstrap, p.node)
	}
	dsns, err := o.fill(&common)
	if err != nil {
		return nil, err
	}
	plans := make([]plan, len(places))
	for i, p := range places {
		plans[i] = plan{path: filepath.Join(dir, p.node+".yaml"), config: configFor(common, dir, places, i), dsns: dsns}
	}
	return plans, nil
}

// place is a node, its address and its gossip port; the cluster port is the one after it, then comes the admin port.
type place struct {
	node, ip string
	port     int
}

// at is the address of a port of the node.
func (p place) at(port int) string { return net.JoinHostPort(p.ip, strconv.Itoa(port)) }

// places gives each node its address, loopback unless they were given, and ports that no other one of the same address has.
func (o InitOptions) places() ([]place, error) {
	places := make([]place, len(o.Nodes))
	used := map[string]int{}
	addressed := 0
	for i, entry := range o.Nodes {
		node, ip, given := strings.Cut(entry, "=")
		if !given {
			ip = "127.0.0.1"
		} else if _, err := netip.ParseAddr(ip); err != nil {
			return nil, fmt.Errorf("--nodes %s: %q is not an IP address: want name=IP, such as n1=10.0.0.1", entry, ip)
		} else {
			addressed++
		}
		places[i] = place{node: node, ip: ip, port: o.BasePort + portStep*used[ip]}
		used[ip]++
	}
	if addressed != 0 && addressed != len(places) {
		return nil, errors.New("--nodes: give an address to all nodes or to none: nodes on loopback cannot be reached from other machines")
	}
	last := slices.MaxFunc(places, func(a, b place) int { return a.port - b.port }).port + 2
	if o.BasePort < 1 || last > 65535 {
		return nil, fmt.Errorf("base port %d: ports %d to %d are needed: choose one from 1 to %d", o.BasePort, o.BasePort, last, 65535-(last-o.BasePort))
	}
	return places, nil
}

// fill sets what all nodes have in common.
func (o InitOptions) fill(c *configs.Config) (map[string]string, error) {
	if o.Group != "" {
		c.Group = o.Group
	}
	if o.Profile != "" {
		c.Profile = configs.Profile(o.Profile)
	}
	dsns := map[string]string{}
	for _, entry := range o.Databases {
		name, dsn, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, errors.New("--database: want name=dsn, such as shop=postgres://backup@127.0.0.1:5432/shop")
		}
		c.Databases = append(c.Databases, configs.Database{Name: name, DSN: configs.NewDSN(dsn)})
		dsns[name] = dsn
	}
	for _, entry := range o.Storages {
		name, path, ok := strings.Cut(entry, "=")
		if !ok || path == "" {
			return nil, fmt.Errorf("--storage %s: want name=path, such as disk=/srv/backups", entry)
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("find the storage's directory: %w", err)
		}
		c.Storages = append(c.Storages, configs.Storage{Name: name, Kind: "local", Path: absolute})
	}
	return dsns, nil
}

// configFor is the configuration of the i-th node.
func configFor(c configs.Config, dir string, places []place, i int) configs.Config {
	p := places[i]
	c.Node = p.node
	c.Home = filepath.Join(dir, c.Node)
	c.Admin.Socket = filepath.Join(dir, c.Node+".sock")
	c.Gossip.Bind, c.Cluster.Bind, c.Admin.Bind = p.at(p.port), p.at(p.port+1), p.at(p.port+2)
	c.Security = configs.Security{
		CertificateFile: filepath.Join(dir, c.Node+certSuffix), KeyFile: filepath.Join(dir, c.Node+keySuffix),
		CAFile: filepath.Join(dir, authorityName+certSuffix), GossipKeyFile: filepath.Join(dir, gossipKeyName),
	}
	c.Seeds = []string{}
	for other, o := range places {
		if other != i {
			c.Seeds = append(c.Seeds, o.at(o.port))
		}
	}
	return c
}
