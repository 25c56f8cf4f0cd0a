package offline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/processor"
)

// kitFiles are the files of a kit for a configuration. It reads the keys and secrets that this refers to.
func kitFiles(c configs.Config, kept *configs.Settings, now time.Time) ([]kitFile, KitContent, error) {
	k := &kitMaker{now: now}
	k.content.Places = map[string]string{}
	k.line("# What is needed to restore from the storages of group %s; made %s.", c.Group, now.UTC().Format(time.DateOnly))
	k.line("node: kit")
	k.line("home: %s", quote(kitDir+"/home"))
	k.line("group: %s", quote(c.Group))
	if err := errors.Join(k.processors(c.Processors), k.storages(c.Storages)); err != nil {
		return nil, k.content, err
	}
	k.databases(c.Databases)
	signers, err := os.ReadFile(filepath.Join(c.Home, SignersName))
	switch {
	case err == nil:
		k.file(SignersName, string(signers))
		if err := k.believes(signers); err != nil {
			return nil, k.content, err
		}
	case errors.Is(err, fs.ErrNotExist):
		k.warn("the node's home has no %s: restores will need --accept-foreign (start the node once, then make the kit again)", SignersName)
	default:
		return nil, k.content, fmt.Errorf("read the list of signers: %w", err)
	}
	if k.content.ID != "" {
		k.file(kitID, k.content.ID+"\n")
	}
	if kept != nil && len(kept.Objects()) > 0 {
		k.file(kitKept, kept.Text())
	}
	files := append([]kitFile{{kitSteps, steps(c, k.content, now)}, {kitConfig, k.config.String()}}, k.files...)
	for _, f := range files {
		k.content.Files = append(k.content.Files, f.name)
	}
	return files, k.content, nil
}

// kitMaker gathers a kit.
type kitMaker struct {
	now     time.Time
	config  strings.Builder
	files   []kitFile
	content KitContent
}

func (k *kitMaker) line(format string, args ...any) { fmt.Fprintf(&k.config, format+"\n", args...) }

func (k *kitMaker) file(name, text string) { k.files = append(k.files, kitFile{name, text}) }

func (k *kitMaker) warn(format string, args ...any) {
	k.content.Warnings = append(k.content.Warnings, fmt.Sprintf(format, args...))
}

// processors writes those that decrypt; others need no settings to be read.
func (k *kitMaker) processors(list []configs.Processor) error {
	encrypts := false
	for i, p := range list {
		if p.Kind != "age" {
			continue
		}
		encrypts = true
		var keys []string
		for _, key := range []struct{ setting, path string }{{"identity_file", p.IdentityFile}, {"passphrase_file", p.PassphraseFile}} {
			if key.path == "" {
				continue
			}
			text, err := os.ReadFile(key.path)
			if err != nil {
				return fmt.Errorf("processors[%d].%s: %w", i, key.setting, err)
			}
			name := "keys/" + key.setting
			k.file(name, string(text))
			keys = append(keys, fmt.Sprintf("    %s: %s", key.setting, quote(kitDir+"/"+name)))
		}
		if len(keys) == 0 {
			continue
		}
		made, err := OpenProcessor(p)
		if err != nil {
			return fmt.Errorf("processors[%d] %s: %w", i, p.Kind, err)
		}
		k.content.ID = processor.KitID([]processor.Processor{made})
		k.line("processors:\n  - kind: age\n    restore_only: true\n%s", strings.Join(keys, "\n")) // each opens backups of some time
		return nil
	}
	switch {
	case encrypts:
		return errors.New("backups are encrypted and this configuration has no key to decrypt them: make the kit with that of a node that restores (processors: identity_file)")
	default:
		k.warn("backups are not encrypted: whoever has a storage has the data")
	}
	return nil
}

// storages writes every storage with its secrets in files of their own.
func (k *kitMaker) storages(list []configs.Storage) error {
	if len(list) == 0 {
		return errors.New("the configuration has no storage: there is nothing to restore from")
	}
	k.line("storages:")
	for i, s := range list {
		if s.Kind == "mem" {
			k.warn("storage %s is the memory of a node: nothing of it outlives the node", s.Name)
			continue
		}
		if s.Kind == "local" {
			k.warn("storage %s is the directory %s of a machine: it must be there, or be mounted, where you restore", s.Name, s.Path)
		}
		k.content.Storages = append(k.content.Storages, s.Name)
		k.content.Places[s.Name] = StorageMark(s)
		if err := k.storage(s); err != nil {
			return fmt.Errorf("storages[%d] %s: %w", i, s.Name, err)
		}
	}
	return nil
}

// StorageMark tells two places that storages are in apart, whatever their names and how they are reached: a kit that names one
// does not lead to the other.
func StorageMark(s configs.Storage) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{s.Kind, s.Path, s.Endpoint, s.Bucket, s.Prefix, s.AppKey, s.Folder}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// believes notes the keys of a list of signers.
func (k *kitMaker) believes(text []byte) error {
	var list Signers
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("read the list of signers: %w", err)
	}
	k.content.Signers = slices.Sorted(maps.Keys(list.Keys))
	return nil
}

// storage writes the settings that are not zero.
func (k *kitMaker) storage(s configs.Storage) error {
	begin := "  - "
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		if v.Field(i).IsZero() {
			continue
		}
		var text string
		switch value := v.Field(i).Interface().(type) {
		case configs.Secret:
			clear, err := value.Resolve()
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			name := "secrets/" + s.Name + "." + key
			k.file(name, clear+"\n")
			text = quote("file:" + kitDir + "/" + name)
		case configs.Lock:
			continue // it concerns what is written
		case string:
			text = quote(value)
		default:
			text = fmt.Sprint(value)
		}
		k.line("%s%s: %s", begin, key, text)
		begin = "    "
	}
	return nil
}

// databases writes the names: where they will be, nobody knows yet.
func (k *kitMaker) databases(list []configs.Database) {
	k.line("# The server that gets the databases: set DSN in the environment, postgres://user:password@host/postgres")
	k.line("databases:")
	for _, d := range list {
		if !d.Scratch {
			k.line("  - name: %s\n    dsn: env:DSN", quote(d.Name))
		}
	}
}

// steps is the page of a kit.
func steps(c configs.Config, content KitContent, now time.Time) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("How to restore the databases of group %s\n", c.Group)
	say("This kit was made on %s. You need: this file's passphrase (you have it, or you would not read", now.UTC().Format(time.DateOnly))
	say("this), a PostgreSQL server with its client programs, and the program fencepost.\n")
	if content.ID != "" {
		say("Its id is %s: manifests name the kit that their backup needs (kit).\n", content.ID)
	}
	say("1. Unpack the kit, if it is not:   fencepost kit open KIT --dir here")
	say("2. Say where the server is:        export DSN=postgres://USER:PASSWORD@HOST/postgres")
	say("3. See what there is:              fencepost storage list %s --config here/%s --signers here/%s", first(content.Storages), kitConfig, SignersName)
	say("4. Restore:                        fencepost storage restore %s BACKUP --database %s --config here/%s --signers here/%s", first(content.Storages), firstDatabase(c), kitConfig, SignersName)
	say("   The database gets its old name; --as NAME gives it another one. Nothing is replaced unless --replace says so.\n")
	say("A whole server, with its roles, into another one (the server's name, or that of a database on it; shows the plan and asks):")
	say("   echo postgres://USER:PASSWORD@HOST/postgres > new.dsn")
	say("   fencepost restore --server %s --to file:new.dsn --config here/%s", serverOf(firstDatabase(c)), kitConfig)
	say("   After an interruption of any kind the same command goes on. --as-of 2026-05-02 takes nothing younger.\n")
	say("A restore of one database makes no roles. If step 4 names some that are missing: create them, or have those of the old server written:")
	say("   fencepost storage globals %s BACKUP --out roles.sql --config here/%s --signers here/%s", first(content.Storages), kitConfig, SignersName)
	say("   Read it, and run with psql what you need of it (passwords are in it only if that was asked for).\n")
	say("To have a new group with the settings, users and pins of the lost one, once its first node runs (its file names no storage yet):")
	say("   fencepost group restore --from %s --kit KIT        what people had entered is in settings.yaml here, too\n", first(content.Storages))
	say("Without the program fencepost, with the public programs age, tar and zstd:")
	say("   age -d KIT | tar x; sed -i \"s|%s|$PWD|\" %s      this kit, in the present directory", kitDir, kitConfig)
	say("   In a storage, a backup is BACKUP/TOKEN/: manifest.json tells the objects, their SHA-256 and which programs they")
	say("   went through. For each: download it, then  age -d -i keys/identity_file OBJECT > A;  zstd -d < A > B;  sha256sum B,")
	say("   compare that with raw_sha256, and only then  pg_restore --exit-on-error -d NEW_DATABASE B  (pre-data, then data,")
	say("   then post-data, where there are several). Never through a pipe: what is cut would be taken for the whole.\n")
	for _, name := range content.Storages {
		for _, s := range c.Storages {
			if s.Name == name {
				say("Storage %s: %s", name, where(s))
			}
		}
	}
	for _, w := range content.Warnings {
		say("Note: %s", w)
	}
	return b.String()
}

func where(s configs.Storage) string {
	switch s.Kind {
	case "s3":
		return fmt.Sprintf("bucket %s at %s, prefix %q, region %q", s.Bucket, s.Endpoint, s.Prefix, s.Region)
	case "dropbox":
		return fmt.Sprintf("Dropbox app %s, folder %q", s.AppKey, s.Folder)
	}
	return "directory " + s.Path
}

func first(list []string) string {
	if len(list) == 0 {
		return "STORAGE"
	}
	return list[0]
}

// serverOf is the server in the name of a database that was found on one.
func serverOf(database string) string {
	server, _, _ := strings.Cut(database, ".")
	return server
}

func firstDatabase(c configs.Config) string {
	for _, d := range c.Databases {
		if !d.Scratch {
			return d.Name
		}
	}
	return "DATABASE"
}
