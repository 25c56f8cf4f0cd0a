package offline

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Shelf is one storage of a configuration, looked at without a daemon, a group and a ledger.
type Shelf struct {
	config  *configs.Config
	section configs.Storage
	foreign bool // every manifest is believed, and a storage without an owner too
	catalog pipeline.Catalog
	close   func() error
}

// ShelfOptions say which storage, and whose manifests are believed.
type ShelfOptions struct {
	Config  string // configuration file of a node
	Storage string // name of a storage in it
	// Signers is a list of keys. Empty: that of the node's home, or of the kit that the configuration is of; without one
	// nothing is believed.
	Signers string
	// AcceptForeign believes every manifest, signed or not.
	AcceptForeign bool
	// Settings are those of the group, whose storages are looked among, too; nil: they are not known.
	Settings *configs.Settings
}

// load reads the configuration, with the storages of the group.
func (o ShelfOptions) load() (*configs.Config, error) {
	c, err := configs.Load(o.Config)
	if err == nil && o.Settings != nil {
		c, _ = c.With(*o.Settings) // where both name something the file counts, here as on the node
	}
	return c, err
}

// OpenShelf opens the storage and the processors of a configuration. Nothing is written to the storage.
func OpenShelf(o ShelfOptions) (*Shelf, error) {
	c, err := o.load()
	if err != nil {
		return nil, err
	}
	section, err := named(c, o.Config, o.Storage)
	if err != nil {
		return nil, err
	}
	s := &Shelf{config: c, section: section, foreign: o.AcceptForeign, catalog: pipeline.Catalog{Storages: map[string]storage.Storage{}}}
	if s.catalog.Processors, err = registryOf(c); err != nil {
		return nil, err
	}
	if s.catalog.Trust, err = believed(o, c.Home); err != nil {
		return nil, err
	}
	st, closer, err := OpenStorage(section, Accounts{}, true, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, advise(section, fmt.Errorf("storage %s: %w", section.Name, err))
	}
	if section.AppendOnly {
		st = storage.AppendOnly(st, slog.New(slog.DiscardHandler))
	}
	s.catalog.Storages[section.Name], s.close = storage.Retry(st, storage.RetryOptions{}), closer
	return s, nil
}

// there asks whether it is a storage that a group has used: an empty folder where a disk should be mounted is not one without
// backups.
func (s *Shelf) there(ctx context.Context) error {
	_, err := storage.CheckOwner(ctx, s.catalog.Storages[s.section.Name], "")
	if err == nil || errors.Is(err, storage.ErrForeign) || errors.Is(err, storage.ErrNoOwner) && s.foreign {
		return nil
	}
	return advise(s.section, fmt.Errorf("storage %s: %w", s.section.Name, err))
}

// believed chooses how manifests are judged.
func believed(o ShelfOptions, home string) (func(context.Context, pipeline.Manifest) error, error) {
	if o.AcceptForeign {
		return nil, nil
	}
	path := o.Signers
	if path == "" {
		path = filepath.Join(home, SignersName)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && signersOf(o.Config) != "" {
			path = signersOf(o.Config)
		}
	}
	list, err := ReadSigners(path)
	switch {
	case err == nil:
		return list.Trust, nil
	case o.Signers == "" && errors.Is(err, fs.ErrNotExist):
		return func(_ context.Context, m pipeline.Manifest) error { // not known here, whoever has signed it
			return pipeline.Judge(m, m.Cluster, func(string, ed25519.PublicKey) bool { return false })
		}, nil
	}
	return nil, err
}

// Close closes the storage.
func (s *Shelf) Close() error { return s.close() }

// Shelved are a backup as its manifest describes it, and what is wrong in a storage.
type (
	ShelvedBackup = ledger.Backup
	ShelfFinding  = pipeline.Finding
)

// List are the whole backups of the storage, oldest first, and what is wrong there.
func (s *Shelf) List(ctx context.Context) ([]ShelvedBackup, []ShelfFinding, error) {
	if err := s.there(ctx); err != nil {
		return nil, nil, err
	}
	list, findings, err := pipeline.Shelved(ctx, s.catalog, nil)
	return list, findings, advise(s.section, err)
}

// ShelfRestore says what is restored, and into what.
type ShelfRestore struct {
	Backup   string
	Database string // configured name of a database whose server gets it; required
	Target   string // name of the database to make; empty: the one that was dumped
	Replace  bool   // an existing one may be replaced; it is kept under another name
	Count    func(n int)
}

// shelfAttempt is an attempt without a group to make something: each cleans up after those before it, of the same thing, that were
// killed. As by FormGroup, its number is one that no group has given out to an attempt that still runs.
func shelfAttempt(of string) source.Attempt {
	sum := sha256.Sum256([]byte(of))
	return source.Attempt{Task: "shelf-" + hex.EncodeToString(sum[:8]), Token: uint64(time.Now().UnixMicro())}
}

// Restore restores a backup into a new database and swaps it in; it returns its name, and under which name a database that
// it replaced is kept. The configuration's restore.keep_old and restore.jobs count.
// A restore into the same target that was killed is cleaned up after; one that still runs is ended.
func (s *Shelf) Restore(ctx context.Context, r ShelfRestore) (target, undo string, err error) {
	d, err := s.receiver(r.Database)
	if err != nil {
		return "", "", err
	}
	if err := s.there(ctx); err != nil {
		return "", "", err
	}
	src, err := OpenSource(d, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", "", fmt.Errorf("database %s of the configuration: %w", d.Name, err)
	}
	target = r.Target
	if target == "" {
		target = r.Backup // its name is in the manifest; this tells it from others as well
	}
	done, err := pipeline.RestoreDirect(ctx, s.catalog, pipeline.DirectRestore{
		Backup: r.Backup, Into: src, Count: r.Count,
		Attempt: shelfAttempt(target),
		Options: source.RestoreOptions{Target: r.Target, Replace: r.Replace, KeepOld: s.config.Restore.KeepOld,
			RestoreChoices: source.RestoreChoices{Jobs: s.config.Restore.Jobs}},
	})
	if errors.Is(err, source.ErrTargetExists) {
		err = &adviceError{err, TargetHint}
	}
	return done.Target, done.Undo, err
}

// receiver is the database of the configuration whose server gets a restore: not one on which backups are only tried out.
func (s *Shelf) receiver(name string) (found configs.Database, err error) {
	var fit []string
	for _, d := range s.config.Databases {
		if !d.Scratch {
			fit = append(fit, d.Name)
		}
		if d.Name == name {
			found = d
		}
	}
	hint := "the configuration has none that a backup can be restored into"
	if len(fit) > 0 {
		hint = "name one of: " + strings.Join(fit, ", ")
	}
	switch {
	case found.Name == "":
		return found, &adviceError{fmt.Errorf("the configuration has no database named %q", name), hint}
	case found.Scratch:
		return found, &adviceError{fmt.Errorf("%q is a scratch server, which backups are tried out on: none is restored there for good", name), hint}
	}
	return found, nil
}

// maxGlobals bounds what Globals reads, in bytes.
const maxGlobals = 64 << 20

// Globals writes what a backup holds of its whole server, roles and tablespaces as SQL, into a file that must not be there,
// all or nothing and readable by nobody else.
func (s *Shelf) Globals(ctx context.Context, backup, file string) error {
	if err := s.there(ctx); err != nil {
		return err
	}
	text, err := readGlobals(ctx, s.catalog, backup)
	if err != nil {
		return advise(s.section, err)
	}
	return writeNew(file, text)
}

func readGlobals(ctx context.Context, c pipeline.Catalog, backup string) (string, error) {
	text := bounded{most: maxGlobals}
	err := pipeline.ReadPart(ctx, c, backup, source.PartGlobals, &text)
	return text.String(), err
}

// bounded is a text that does not become longer than most.
type bounded struct {
	strings.Builder
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fmt.Errorf("it is longer than %d bytes", b.most)
	}
	return b.Builder.Write(p)
}
