package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// StorageOptions say which storage of a configuration.
type StorageOptions struct {
	Config  string // configuration file of a node
	Storage string // name of a storage in it
	// Signers is the list of keys that tells which group this is. Empty: that of the node's home; there need not be one.
	Signers string
	// Settings are those of the group, whose storages are looked among, too; nil: they are not known.
	Settings *configs.Settings
}

// OwnedBy says who owns a storage.
type OwnedBy struct {
	Cluster    string `json:"cluster,omitempty"` // empty: nobody yet
	Storage    string `json:"storage,omitempty"` // its id
	Generation uint64 `json:"generation,omitempty"`
	High       uint64 `json:"high,omitempty"` // highest number given out
}

// StorageProbe is what became of a probe.
type StorageProbe struct {
	Storage  string      `json:"storage"`
	Owner    OwnedBy     `json:"owner"`
	Steps    []ProbeStep `json:"steps"`
	Warnings []string    `json:"warnings"` // what the storage could not do without failing
	Left     []string    `json:"left"`     // objects that the probe could not remove
}

// ProbeStep is one thing that was tried.
type ProbeStep struct {
	Step    string        `json:"step"`
	Took    time.Duration `json:"took"` // nanoseconds
	Problem string        `json:"problem,omitempty"`
}

// Well tells whether the storage can do all that is needed.
func (p StorageProbe) Well() bool {
	for _, s := range p.Steps {
		if s.Problem != "" {
			return false
		}
	}
	return len(p.Warnings) == 0
}

// AddStorage is ProbeStorage, and when all is well the own group's mark is put on a storage that nobody owns, as the group
// itself does when a node starts that has it in its configuration. It does not replace the one that the group knows.
func AddStorage(ctx context.Context, o StorageOptions, appendOnly bool) (StorageProbe, error) {
	p, err := ProbeStorage(ctx, o, appendOnly)
	if err != nil || !p.Well() {
		return p, err
	}
	one, err := openBare(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return p, err
	}
	defer one.close()
	if one.cluster == "" { // the first node forms the group, and adds it
		return p, nil
	}
	owner, err := storage.Adopt(ctx, one.store, storage.Adoption{Cluster: one.cluster})
	p.Owner = ownedBy(owner)
	return p, err
}

// ProbeStorage tries all that backups need of a storage, and cleans up. Nothing is written to one that another group owns.
// appendOnly: the credentials may not delete; so does append_only in the configuration.
func ProbeStorage(ctx context.Context, o StorageOptions, appendOnly bool) (StorageProbe, error) {
	var heard warnings
	one, err := openBare(o, slog.New(&heard))
	if err != nil {
		return StorageProbe{}, err
	}
	defer one.close()
	owner, err := one.owner(ctx)
	if err != nil {
		return StorageProbe{}, err
	}
	steps, left := storage.Probe(ctx, one.store, storage.ProbeOptions{Long: int64(one.section.PartSize) + 1, AppendOnly: appendOnly || one.section.AppendOnly})
	p := StorageProbe{Storage: o.Storage, Owner: ownedBy(owner), Steps: []ProbeStep{}, Warnings: heard.all(), Left: append([]string{}, left...)}
	for _, s := range steps {
		step := ProbeStep{Step: s.Name, Took: s.Took}
		if s.Err != nil {
			step.Problem = s.Err.Error()
		}
		p.Steps = append(p.Steps, step)
	}
	return p, nil
}

// AdoptStorage makes a storage that another group owns the own group's. Its backups stay; they are foreign ones. sure is asked
// before that, with the owner; its error is the answer. One that the own group owns is left as it is; one without an owner
// is not for this: the group adds it when its node starts.
func AdoptStorage(ctx context.Context, o StorageOptions, sure func(OwnedBy) error) (was, is OwnedBy, err error) {
	one, err := openBare(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return was, is, err
	}
	defer one.close()
	if one.cluster == "" {
		return was, is, fmt.Errorf("which group is to own storage %s? there is no %s in the home of this node: start it once, or name such a list by --signers", o.Storage, SignersName)
	}
	owner, err := storage.CheckOwner(ctx, one.store, one.cluster)
	was = ownedBy(owner)
	switch {
	case err == nil:
		return was, was, nil
	case errors.Is(err, storage.ErrNoOwner):
		return was, is, fmt.Errorf("storage %s: %w: the group adds a new one when its node starts; one that it has used before is not mounted, or lost: then give the new one a name of its own", o.Storage, err)
	case !errors.Is(err, storage.ErrForeign):
		return was, is, advise(one.section, fmt.Errorf("storage %s: %w", o.Storage, err))
	}
	if err := sure(was); err != nil {
		return was, is, err
	}
	owner, err = storage.Adopt(ctx, one.store, storage.Adoption{Cluster: one.cluster, TakeOver: true})
	return was, ownedBy(owner), err
}

// SetStorageSecret puts another secret into the file that a storage's secret_key (s3) or refresh_token (dropbox) names, all at
// once, after the storage has been read with it: a wrong one changes nothing. It returns the file. A running node has the
// new one from its next start.
func SetStorageSecret(ctx context.Context, o StorageOptions, value string) (file string, err error) {
	c, section, err := sectionOf(o)
	if err != nil {
		return "", err
	}
	field, ref := "secret_key", &section.SecretKey
	switch section.Kind {
	case "s3":
	case "dropbox":
		field, ref = "refresh_token", &section.RefreshToken
	default:
		return "", fmt.Errorf("storage %s is of kind %s, which has no secret", o.Storage, section.Kind)
	}
	file, ok := ref.File()
	if !ok {
		return "", fmt.Errorf("storage %s: %s is %s: write file:PATH, so that there is a place for the secret", o.Storage, field, *ref)
	}
	value = strings.TrimSpace(value)
	if value == "" || strings.ContainsAny(value, "\r\n") {
		return "", fmt.Errorf("storage %s: the new secret is empty, or has more than one line", o.Storage)
	}
	next, err := writeBeside(file, value+"\n")
	if err != nil {
		return "", fmt.Errorf("keep the secret: %w", err)
	}
	defer func() {
		if rest := os.Remove(next); rest != nil && !errors.Is(rest, fs.ErrNotExist) {
			err = errors.Join(err, rest)
		}
	}()
	*ref = configs.NewSecret("file:" + next)
	one, err := openSection(o, c, section, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer one.close()
	if _, err := one.owner(ctx); err != nil {
		return "", errors.New(secret.NewRedactor(secret.New(value)).Text(fmt.Sprintf("the storage cannot be read with the new secret, and the old one stays: %s", err)))
	}
	return file, os.Rename(next, file)
}

// bare is one storage of a configuration, not guarded.
type bare struct {
	section configs.Storage
	store   storage.Storage
	cluster string // of the node's group; empty: not known
	close   func() error
}

func sectionOf(o StorageOptions) (*configs.Config, configs.Storage, error) {
	c, err := configs.Load(o.Config)
	if err != nil {
		return nil, configs.Storage{}, err
	}
	if o.Settings != nil {
		c, _ = c.With(*o.Settings) // what does not count beside the file is not looked for
	}
	s, err := named(c, o.Config, o.Storage)
	return c, s, err
}

func openBare(o StorageOptions, log *slog.Logger) (*bare, error) {
	c, section, err := sectionOf(o)
	if err != nil {
		return nil, err
	}
	return openSection(o, c, section, log)
}

func openSection(o StorageOptions, c *configs.Config, section configs.Storage, log *slog.Logger) (*bare, error) {
	one := &bare{section: section}
	path := o.Signers
	if path == "" {
		path = filepath.Join(c.Home, SignersName)
	}
	switch list, err := ReadSigners(path); {
	case err == nil:
		one.cluster = list.Cluster
	case o.Signers != "" || !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	var err error
	if one.store, one.close, err = OpenStorage(section, Accounts{}, false, log); err != nil {
		return nil, advise(section, fmt.Errorf("storage %s: %w", section.Name, err))
	}
	return one, nil
}

// owner is who owns the storage: nobody, or the own group.
func (b *bare) owner(ctx context.Context) (storage.Owner, error) {
	owner, err := storage.CheckOwner(ctx, b.store, b.cluster)
	switch {
	case err == nil, errors.Is(err, storage.ErrNoOwner):
		return owner, nil
	case errors.Is(err, storage.ErrForeign) && b.cluster == "":
		return owner, fmt.Errorf("storage %s belongs to a group, and which one this node is of is not known: nothing was written; name a %s of the group by --signers", b.section.Name, SignersName)
	}
	return owner, advise(b.section, fmt.Errorf("storage %s: nothing was written: %w", b.section.Name, err))
}

func ownedBy(o storage.Owner) OwnedBy {
	return OwnedBy{Cluster: o.Cluster, Storage: o.Storage, Generation: o.Generation, High: o.High}
}

// writeBeside writes a new file in the folder of path, for its owner alone, and returns its name.
func writeBeside(path, text string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".token-") // of mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// warnings keeps what a storage warns of.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
	return nil
}

func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w *warnings) WithGroup(string) slog.Handler      { return w }

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.list...)
}
