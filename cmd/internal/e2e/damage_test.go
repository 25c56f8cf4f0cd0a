package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/age"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/source/postgres"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/local"
)

// damaged is a storage with backups of one database, out of which it is restored after something happened to them.
type damaged struct {
	*testing.T
	root    string
	keys    age.Keys
	src     *postgres.Source
	dsn     string
	target  string
	before  pgtest.Print
	token   uint64
	backups map[string]pipeline.Manifest // by kind
}

// backUp makes the backups: an older and a newer archive, a plain script, and several streams, all with the same rows.
func backUp(t *testing.T) *damaged {
	dsn := database(t, bulk("goods", 1), "CREATE TABLE notes AS SELECT g AS id, md5(g::text) AS body FROM generate_series(1, 5000) g",
		"CREATE INDEX ON notes (body)", "SELECT lo_from_bytea(0, decode(repeat(md5(g::text), 2000), 'hex')) FROM generate_series(1, 20) g")
	recipient, identity := ageKey(t)
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}, extra: encrypted(recipient, identity), lasting: 30 * time.Minute})
	c.up()
	d := &damaged{T: t, root: filepath.Join(c.dir, "a"), dsn: dsn, target: nameIn(t, dsn), token: 1 << 51, backups: map[string]pipeline.Manifest{}}
	for _, kind := range []string{"older", "custom", "plain", "streams"} {
		want := api.CreateBackup{Database: "shop"}
		switch kind {
		case "plain":
			want.Format, want.NoLargeObjects = "plain", true
		case "streams":
			want.Jobs = 3
		}
		task, err := c.client("n1").CreateBackup(c.ctx, want)
		if err != nil {
			t.Fatal(err)
		}
		done := c.finishes("n1", task.ID)
		d.backups[kind] = d.manifest(done.Backup, done.Token)
	}
	c.end()
	var err error
	if d.keys, err = age.Load(age.Files{Identity: identity}); err != nil {
		t.Fatal(err)
	}
	if d.src, err = postgres.New(postgres.Config{DSN: dsn}); err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, "DELETE FROM goods WHERE id % 3 = 0")
	d.before = print(t, dsn)
	return d
}

func (d *damaged) manifest(backup string, token uint64) pipeline.Manifest {
	d.Helper()
	f, err := os.Open(filepath.Join(d.root, pipeline.ManifestPath(backup, token)))
	if err != nil {
		d.Fatal(err)
	}
	defer f.Close()
	m, err := pipeline.DecodeManifest(f)
	if err != nil {
		d.Fatal(err)
	}
	return m
}

func (d *damaged) path(m pipeline.Manifest, part string) string {
	return filepath.Join(d.root, pipeline.ObjectPath(m.Backup, m.Token, part))
}

func (d *damaged) read(path string) []byte {
	d.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		d.Fatal(err)
	}
	return b
}

func (d *damaged) write(path string, b []byte) {
	d.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		d.Fatal(err)
	}
}

// restore restores over the database, by the storage alone.
func (d *damaged) restore(m pipeline.Manifest, keys age.Keys, inPlace bool) error {
	d.Helper()
	registry, err := processor.NewRegistry(zstd.Default(), age.New(age.Options{Keys: keys}))
	if err != nil {
		d.Fatal(err)
	}
	st, err := local.Open(local.Options{Root: d.root, ReadOnly: true})
	if err != nil {
		d.Fatal(err)
	}
	defer st.Close()
	d.token++
	_, err = pipeline.RestoreDirect(d.Context(), pipeline.Catalog{Storages: map[string]storage.Storage{"a": st}, Processors: registry}, pipeline.DirectRestore{
		Backup: m.Backup, Into: d.src, Attempt: source.Attempt{Task: "damage", Token: d.token},
		Options: source.RestoreOptions{Target: d.target, Replace: true, RestoreChoices: source.RestoreChoices{InPlace: inPlace}},
	})
	return err
}

// What is said of a harmed object, whatever part of it is met first.
const (
	strangerSaid = "object is not what the manifest says"
	cutSaid      = "bytes, the manifest has"
	changedSaid  = "its SHA-256 is not that of the manifest|stream is corrupt|no key fits" // the last one: in the header
)

// refused harms, restores, and mends: the restore must have failed with one of the words, and changed nothing.
func (d *damaged) refused(what string, m pipeline.Manifest, inPlace bool, keys age.Keys, harm map[string][]byte, words string) {
	d.Helper()
	whole := map[string][]byte{}
	for path, b := range harm {
		whole[path] = d.read(path)
		if bytes.Equal(whole[path], b) {
			d.Fatalf("%s: nothing was harmed", what)
		}
		d.write(path, b)
	}
	err := d.restore(m, keys, inPlace)
	for path, b := range whole {
		d.write(path, b)
	}
	if err == nil {
		d.Fatalf("%s, in place %v: it was restored", what, inPlace)
	}
	if !slices.ContainsFunc(strings.Split(words, "|"), func(w string) bool { return strings.Contains(err.Error(), w) }) {
		d.Errorf("%s, in place %v: it says %v, want %s", what, inPlace, err, words)
	}
	if strings.Contains(err.Error(), "AGE-SECRET") {
		d.Errorf("%s: a key is in %v", what, err)
	}
	got := print(d.T, d.dsn)
	delete(got.Tables, "fencepost.attempt")
	want := d.before
	for _, difference := range pgtest.Diff(pgtest.Print{Tables: want.Tables, Objects: want.Objects, Sequences: want.Sequences},
		pgtest.Print{Tables: got.Tables, Objects: got.Objects, Sequences: got.Sequences}) {
		d.Errorf("%s, in place %v: %s", what, inPlace, difference)
	}
	if d.Failed() {
		d.FailNow()
	}
}

// rounds is how often something random is tried.
func rounds(short, full int) int {
	if os.Getenv("FENCEPOST_LONG") != "" {
		return full
	}
	return short
}

// TestDamagedBackups: objects that are cut, changed by one bit, exchanged, of an older backup, or of another key: the restore
// is refused, says what is wrong, and the target is what it was; as an archive, a script and streams, into a new database and in place.
func TestDamagedBackups(t *testing.T) {
	t.Parallel()
	d := backUp(t)
	seed := rand.Uint64()
	if text := os.Getenv("FENCEPOST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	_, strange := ageKey(t)
	other, err := age.Load(age.Files{Identity: strange})
	if err != nil {
		t.Fatal(err)
	}
	older := d.backups["older"]
	for _, kind := range []string{"custom", "plain", "streams"} {
		m := d.backups[kind]
		modes := []bool{false}
		if kind == "custom" {
			modes = append(modes, true)
		}
		for _, inPlace := range modes {
			d.refused(kind+": another key", m, inPlace, other, nil, "no key fits")
			data, script := d.path(m, source.PartData), d.path(m, source.PartDatabase)
			d.refused(kind+": two objects exchanged", m, inPlace, d.keys, map[string][]byte{data: d.read(script), script: d.read(data)}, strangerSaid)
			archive := strangerSaid
			if kind == "plain" { // its first bytes are looked at before the rest is read
				archive = "it is no plain dump"
			}
			d.refused(kind+": an older object", m, inPlace, d.keys, map[string][]byte{data: d.read(d.path(older, source.PartData))}, archive)
			d.refused(kind+": an older script", m, inPlace, d.keys, map[string][]byte{script: d.read(d.path(older, source.PartDatabase))}, strangerSaid)
			for i := range rounds(2, 50) {
				o := m.Objects[random.IntN(len(m.Objects))]
				path := d.path(m, o.Name)
				b := d.read(path)
				at := random.IntN(len(b))
				if i == 0 { // after the large objects, which are last
					path = data
					b = d.read(path)
					at = len(b) - 1
				}
				d.refused(fmt.Sprintf("%s: %s cut at %d of %d", kind, filepath.Base(path), at, len(b)), m, inPlace, d.keys, map[string][]byte{path: b[:at]}, cutSaid)
				flipped := slices.Clone(b)
				flipped[at] ^= 1 << random.IntN(8)
				d.refused(fmt.Sprintf("%s: %s changed at %d of %d", kind, filepath.Base(path), at, len(b)), m, inPlace, d.keys, map[string][]byte{path: flipped}, changedSaid)
			}
		}
	}
	names, err := pg.Server(t).Databases(t.Context())
	if err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, d.target+"__") }) {
		t.Errorf("databases %q, %v", names, err)
	}
	// And what was mended restores.
	for _, kind := range []string{"custom", "streams"} {
		if err := d.restore(d.backups[kind], d.keys, false); err != nil {
			t.Errorf("%s, mended: %v", kind, err)
		}
		if n := pg.Server(t).Text(t, d.target, "SELECT count(*) FROM pg_largeobject_metadata"); n != "20" {
			t.Errorf("%s: %s large objects", kind, n)
		}
	}
}
