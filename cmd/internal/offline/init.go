package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fencepost/fencepost/configs"
)

// DefaultBasePort is the gossip port of the first node.
const DefaultBasePort = 7946

// portStep leaves room for the other ports of a node.
const portStep = 10

// InitOptions say what to write.
type InitOptions struct {
	Nodes     []string // names; at least one
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
}

// plan is one file to be written.
type plan struct {
	path   string
	config configs.Config
	dsns   map[string]string // by database: what a DSN would not print
}

// Init writes one configuration per node and says which. An error that comes from wrong
// options is a *configs.Error or names the option; nothing has been written then.
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
	for _, p := range plans {
		for _, path := range []string{p.path, p.config.Home, p.config.Admin.Socket} {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("%s is there already: init overwrites nothing: choose another directory: %w", path, fs.ErrExist)
			}
		}
	}
	if err := writeAll(filepath.Dir(plans[0].path), plans); err != nil {
		return nil, err
	}
	files := make([]InitFile, len(plans))
	for i, p := range plans {
		c := p.config
		files[i] = InitFile{c.Node, p.path, c.Home, c.Admin.Socket, c.Gossip.Bind, c.Cluster.Bind}
	}
	return files, nil
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
	if last := o.BasePort + portStep*(len(o.Nodes)-1) + 1; o.BasePort < 1 || last > 65535 {
		return nil, fmt.Errorf("base port %d: ports %d to %d are needed: choose one from 1 to %d", o.BasePort, o.BasePort, last, 65535-(last-o.BasePort))
	}
	common := configs.Default()
	dsns, err := o.fill(&common)
	if err != nil {
		return nil, err
	}
	plans := make([]plan, len(o.Nodes))
	for i, node := range o.Nodes {
		plans[i] = plan{path: filepath.Join(dir, node+".yaml"), config: o.node(common, dir, i), dsns: dsns}
	}
	return plans, nil
}

// fill sets what all nodes have in common.
func (o InitOptions) fill(c *configs.Config) (map[string]string, error) {
	c.Bootstrap = o.Nodes
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

// node is the configuration of the i-th node.
func (o InitOptions) node(c configs.Config, dir string, i int) configs.Config {
	gossip := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", o.BasePort+portStep*i) }
	c.Node = o.Nodes[i]
	c.Home = filepath.Join(dir, c.Node)
	c.Admin.Socket = filepath.Join(dir, c.Node+".sock")
	c.Gossip.Bind = gossip(i)
	c.Cluster.Bind = fmt.Sprintf("127.0.0.1:%d", o.BasePort+portStep*i+1)
	c.Seeds = []string{}
	for other := range o.Nodes {
		if other != i {
			c.Seeds = append(c.Seeds, gossip(other))
		}
	}
	return c
}
