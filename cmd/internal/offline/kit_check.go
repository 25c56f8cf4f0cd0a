package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	out := KitCheckStorage{Storage: o.Storage, Closed: []pipeline.Closed{}}
	o.AcceptForeign = o.Signers == "" // then a restore has to say so too
	shelf, err := OpenShelf(o)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	defer shelf.Close()
	list, _, err := shelf.List(ctx)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	newest := map[string]string{}
	for _, b := range list { // oldest first
		newest[b.Database] = b.ID
		out.Newest = &b.AsOf
	}
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
	for database, id := range newest {
		if err := pipeline.Opens(ctx, shelf.catalog, id); err != nil {
			out.Problem = fmt.Sprintf("backup %s of database %s: %v", id, database, err)
		}
	}
	return out
}
