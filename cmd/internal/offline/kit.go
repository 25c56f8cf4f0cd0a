package offline

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/processor/age"
)

// A kit is what is needed to restore on a machine that has nothing: a tar archive, encrypted by a passphrase in the age
// format, of
//
//	STEPS.txt      what to do, for somebody who has never seen this program
//	restore.yaml   storages and processors; paths begin with @DIR@, the directory in which the kit was unpacked
//	keys/…         identities and passphrases that backups are decrypted with
//	secrets/…      credentials of the storages
//	signers.json   whose manifests are believed
//	settings.yaml  the group's settings, as fencepost apply takes them; absent when they were not known, or there are none
//	kit.id         the id of what the kit reads, as manifests name it; absent when nothing is encrypted, or by a passphrase

// Names in a kit.
const (
	kitSteps  = "STEPS.txt"
	kitConfig = "restore.yaml"
	kitID     = "kit.id"
	kitKept   = "settings.yaml"
	kitDir    = "@DIR@"
)

// maxKit bounds what is read of a kit, in bytes.
const maxKit = 16 << 20

// kitFile is one file of a kit.
type kitFile struct{ name, text string }

// KitOptions say what a kit is made of.
type KitOptions struct {
	Config     string // configuration file of a node that can restore
	Out        string // file to write; must not be there
	Passphrase string // at least age.MinPassphrase bytes
	Now        time.Time
	// Settings are those of the group, with the databases that were found on its servers; nil: they are not known, which is
	// one of the warnings.
	Settings *configs.Settings
	// Kept are the settings as people have entered them, without what was found by them; nil: they are not known.
	Kept *configs.Settings
}

// KitContent tells what is in a kit.
type KitContent struct {
	ID       string   `json:"id,omitempty"` // as the manifests name it that need it (processor.KitID)
	Files    []string `json:"files"`
	Storages []string `json:"storages"`
	Warnings []string `json:"warnings"` // what a restore by the kit will lack

	Places  map[string]string `json:"-"` // StorageMark of each storage, by name
	Signers []string          `json:"-"` // the keys that it believes, hex
}

// MakeKit writes a kit, all or nothing. Nothing secret is written but within it.
func MakeKit(o KitOptions) (KitContent, error) {
	c, err := configs.Load(o.Config)
	if err != nil {
		return KitContent{}, err
	}
	if _, err := os.Lstat(o.Out); !errors.Is(err, fs.ErrNotExist) {
		return KitContent{}, fmt.Errorf("%s is there already, and no kit is overwritten: name a new file", o.Out)
	}
	keys, err := age.FromPassphrase(o.Passphrase)
	if err != nil {
		return KitContent{}, err
	}
	if o.Settings != nil {
		c, _ = c.With(*o.Settings) // where both name something the file counts, here as on the node
	}
	files, content, err := kitFiles(*c, o.Kept, o.Now)
	if o.Settings == nil {
		content.Warnings = append(content.Warnings, "the group's settings are not known: storages and databases that only they name are not in the kit")
	}
	if err != nil {
		return content, err
	}
	var sealed bytes.Buffer
	if err := sealKit(&sealed, files, keys, o.Now); err != nil {
		return content, fmt.Errorf("encrypt the kit: %w", err)
	}
	return content, writeNew(o.Out, sealed.String())
}

// sealKit writes the files as an encrypted archive.
func sealKit(to io.Writer, files []kitFile, keys age.Keys, now time.Time) error {
	w, err := age.New(age.Options{Keys: keys}).Wrap(to)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.text)), ModTime: now.Truncate(time.Second), Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.WriteString(t, f.text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), w.Close())
}

// ErrNoKit: the file is no kit, is damaged, or the passphrase is not its own: the format cannot tell these apart.
var ErrNoKit = errors.New("the kit does not open: wrong passphrase, or no whole kit")

var kitName = regexp.MustCompile(`^(keys/|secrets/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)

// openKit reads a kit whole.
func openKit(path, passphrase string) ([]kitFile, error) {
	keys, err := age.FromPassphrase(passphrase)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the kit: %w", err)
	}
	defer f.Close()
	plain, err := age.New(age.Options{Keys: keys}).Unwrap(io.LimitReader(f, maxKit))
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoKit, err)
	}
	defer plain.Close()
	var files []kitFile
	t := tar.NewReader(plain)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrNoKit, err)
		}
		if h.Typeflag != tar.TypeReg || !kitName.MatchString(h.Name) {
			return nil, fmt.Errorf("%w: it has an entry %q", ErrNoKit, h.Name)
		}
		text, err := io.ReadAll(t)
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrNoKit, err)
		}
		files = append(files, kitFile{h.Name, string(text)})
	}
	if _, err := io.Copy(io.Discard, plain); err != nil { // what follows the archive is authenticated too
		return nil, fmt.Errorf("%w (%w)", ErrNoKit, err)
	}
	return files, nil
}

// UnpackKit writes the files of a kit into a directory that must not be there, readable by nobody else, and returns the
// configuration to restore with.
func UnpackKit(path, passphrase, dir string) (config string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("directory %s is there already: name a new one", dir)
	}
	files, err := openKit(path, passphrase)
	if err != nil {
		return "", err
	}
	outputs := make([]output, 0, len(files))
	for _, f := range files {
		text := f.text
		if f.name == kitConfig {
			text = strings.ReplaceAll(text, kitDir, dir)
		}
		outputs = append(outputs, output{filepath.Join(dir, filepath.FromSlash(f.name)), text})
	}
	for _, sub := range []string{"", "keys", "secrets", "home"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return "", fmt.Errorf("make the directory: %w", err)
		}
	}
	if err := writeAll(dir, outputs); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return filepath.Join(dir, kitConfig), nil
}
