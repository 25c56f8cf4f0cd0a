package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
)

// KitCheck is what a kit can do today.
type KitCheck struct {
	ID       string            `json:"id,omitempty"` // of the kit
	Files    []string          `json:"files"`
	Storages []KitCheckStorage `json:"storages"`
	Good     bool              `json:"good"` // from at least one storage every database can be restored that has a backup there
}

// KitCheckStorage is one storage, as the kit reaches it.
type KitCheckStorage struct {
	Storage string     `json:"storage"`
	Backups int        `json:"backups"`          // whole ones, whose manifests are believed
	Newest  *time.Time `json:"newest,omitempty"` // of whatever database
	Problem string     `json:"problem,omitempty"`
	// Closed are backups that the kit has no key for. Older ones are no Problem as long as it opens the newest.
	Closed []pipeline.Closed `json:"closed"`
	// Unknown are backups of the group whose makers' keys the kit does not know: the nodes joined later, or a stranger says
	// that it is one of them. Older ones are no Problem as long as the newest is believed.
	Unknown []KitUnknown `json:"unknown"`
}

// KitUnknown are backups that a node of the group has made whose key a kit does not know.
type KitUnknown struct {
	Node    string `json:"node"`
	Backups int    `json:"backups"`
	Newest  string `json:"newest"` // id
}

// CheckKit opens a kit, reaches each of its storages, and opens the newest backup of each database with the kit's keys, and
// one of each other kit that manifests name: what this one cannot read is told by the id of the kit that can. It
// writes to no storage. The kit is unpacked for that into a directory of its own below tmp ("": the system's), which
// nobody else can read and which is removed again.
func CheckKit(ctx context.Context, kit, passphrase, tmp string) (check KitCheck, err error) {
	dir, err := os.MkdirTemp(tmp, "kit-")
	if err != nil {
		return check, fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	config, err := UnpackKit(kit, passphrase, filepath.Join(dir, "kit"))
	if err != nil {
		return check, err
	}
	files, err := openKit(kit, passphrase)
	if err != nil {
		return check, err
	}
	for _, f := range files {
		check.Files = append(check.Files, f.name)
		if f.name == kitID {
			check.ID = strings.TrimSpace(f.text)
		}
	}
	names, err := storagesIn(config)
	if err != nil {
		return check, err
	}
	for _, name := range names {
		one := checkShelf(ctx, ShelfOptions{Config: config, Storage: name, Signers: signersOf(config)})
		check.Storages = append(check.Storages, one)
		check.Good = check.Good || one.Problem == "" && one.Backups > 0
	}
	return check, context.Cause(ctx)
}

// storagesIn lists the storages of a configuration.
func storagesIn(config string) (names []string, err error) {
	c, err := configs.LoadWith(config, nil)
	if err != nil {
		return nil, err
	}
	for _, s := range c.Storages {
		names = append(names, s.Name)
	}
	return names, nil
}

// signersOf is the kit's own list; "" when it has none.
func signersOf(config string) string {
	path := filepath.Join(filepath.Dir(config), SignersName)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func checkShelf(ctx context.Context, o ShelfOptions) KitCheckStorage {
	out := KitCheckStorage{Storage: o.Storage, Closed: []pipeline.Closed{}, Unknown: []KitUnknown{}}
	o.AcceptForeign = o.Signers == "" // then a restore has to say so too
	shelf, err := OpenShelf(o)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	defer shelf.Close()
	strangers := map[string]pipeline.Manifest{}
	if trust := shelf.catalog.Trust; trust != nil {
		shelf.catalog.Trust = func(ctx context.Context, m pipeline.Manifest) error {
			err := trust(ctx, m)
			if errors.Is(err, pipeline.ErrUnknownKey) {
				strangers[m.Backup] = m
			}
			return err
		}
	}
	list, _, err := shelf.List(ctx)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	newest, asOf := map[string]string{}, map[string]time.Time{}
	for _, b := range list { // oldest first
		newest[b.Database], asOf[b.Database] = b.ID, b.AsOf
		out.Newest = &b.AsOf
		delete(strangers, b.ID) // an attempt of it is believed
	}
	out.Unknown = unknownOf(strangers)
	out.Backups = len(list)
	if len(list) == 0 {
		out.Problem = "it holds no backup that this kit believes"
	}
	closed, err := pipeline.ClosedOf(ctx, shelf.catalog, list)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Closed = append(out.Closed, closed...)
	for _, m := range strangers {
		if m.AsOf.After(asOf[m.Database]) {
			out.Problem = fmt.Sprintf("backup %s of database %s, which is newer than all that this kit believes, is signed with a key that it does not know as node %q's: make a new kit", m.Backup, m.Database, m.Node)
		}
	}
	for database, id := range newest {
		if err := pipeline.Opens(ctx, shelf.catalog, id); err != nil {
			out.Problem = fmt.Sprintf("backup %s of database %s: %v", id, database, err)
		}
	}
	return out
}

// unknownOf counts manifests by their makers.
func unknownOf(strangers map[string]pipeline.Manifest) []KitUnknown {
	out := []KitUnknown{}
	for _, m := range slices.SortedFunc(maps.Values(strangers), func(a, b pipeline.Manifest) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.AsOf.Compare(b.AsOf), cmp.Compare(a.Backup, b.Backup))
	}) {
		if len(out) == 0 || out[len(out)-1].Node != m.Node {
			out = append(out, KitUnknown{Node: m.Node})
		}
		last := &out[len(out)-1]
		last.Backups++
		last.Newest = m.Backup
	}
	return out
}
