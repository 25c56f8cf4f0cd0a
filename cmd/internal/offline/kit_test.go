package offline

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/configs"
)

// kitConfig4 writes a configuration with every kind of storage that outlives a node.
func kitConfig4(t *testing.T, processors string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	id := write("id", "# a key\nAGE-SECRET-KEY-1V970FWV4LK7V6XDPJSYT8SZ4Y0EXDQXZAM2HD5DMW8EYK4D8JRMQUA0PAE\n")
	return write("n.yaml", `node: n1
home: `+filepath.Join(dir, "home")+`
group: shop
gossip: {bind: "127.0.0.1:1"}
cluster: {bind: "127.0.0.1:2"}
databases:
- {name: shop, dsn: "postgres://u:database-secret@h/shop"}
storages:
- {name: disk, kind: local, path: /srv/x}
- {name: cloud, kind: s3, endpoint: "https://s3.example", bucket: backups, prefix: shop, access_key: id, secret_key: "file:`+write("s3", "s3-secret\n")+`", path_style: true, append_only: true, part_size: 16MiB, lock: {mode: governance, days: 3}}
- {name: box, kind: dropbox, app_key: k, refresh_token: "file:`+write("token", "box-secret\n")+`", folder: f}
`+strings.ReplaceAll(processors, "ID", id))
}

const kitPhrase = "correct horse battery"

// What goes into a kit comes out, loads as a configuration with the same storages, and holds the secrets only where they
// belong; the password of the lost database is not among them.
func TestKitHoldsWhatIsNeeded(t *testing.T) {
	config := kitConfig4(t, "processors: [{kind: zstd}, {kind: age, recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p], identity_file: ID}]\n")
	kit := filepath.Join(t.TempDir(), "kit.age")
	content, err := MakeKit(KitOptions{Config: config, Out: kit, Passphrase: kitPhrase, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(content.Storages, []string{"disk", "cloud", "box"}) || len(content.Warnings) != 3 || !strings.Contains(content.Warnings[2], "the group's settings are not known") {
		t.Errorf("content %+v", content)
	}
	dir := filepath.Join(t.TempDir(), "a dir", "here")
	path, err := UnpackKit(kit, kitPhrase, dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.LoadWith(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := configs.LoadWith(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range c.Storages {
		for what, pair := range map[string][2]configs.Secret{"secret_key": {s.SecretKey, want.Storages[i].SecretKey}, "access_key": {s.AccessKey, want.Storages[i].AccessKey}, "refresh_token": {s.RefreshToken, want.Storages[i].RefreshToken}} {
			if pair[1] == (configs.Secret{}) {
				continue
			}
			got, err := pair[0].Resolve()
			if expected, _ := pair[1].Resolve(); err != nil || got != expected {
				t.Errorf("%s of %s: %v", what, s.Name, err)
			}
		}
		s.SecretKey, s.AccessKey, s.RefreshToken, s.Lock = want.Storages[i].SecretKey, want.Storages[i].AccessKey, want.Storages[i].RefreshToken, want.Storages[i].Lock
		if s != want.Storages[i] {
			t.Errorf("storage %+v, want %+v", s, want.Storages[i])
		}
	}
	if id, err := os.ReadFile(filepath.Join(dir, "kit.id")); err != nil || len(content.ID) != 16 || string(id) != content.ID+"\n" {
		t.Errorf("the id: %q, of which the kit holds %q, %v", content.ID, id, err)
	}
	if key, err := os.ReadFile(filepath.Join(dir, "keys", "identity_file")); err != nil || !strings.Contains(string(key), "AGE-SECRET-KEY") {
		t.Errorf("the identity: %v", err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, walkErr error) error {
		if walkErr != nil {
			return walkErr
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "database-secret") || strings.Contains(filepath.Base(path), "STEPS") && strings.Contains(string(text), "-secret") {
			t.Errorf("%s holds a secret that it should not", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := UnpackKit(kit, kitPhrase, dir); err == nil {
		t.Error("a directory that was there was used")
	}
}

// A kit that is cut or changed anywhere, or of another passphrase, yields nothing.
func TestDamagedKits(t *testing.T) {
	dir := t.TempDir()
	kit := filepath.Join(dir, "kit.age")
	if _, err := MakeKit(KitOptions{Config: kitConfig4(t, ""), Out: kit, Passphrase: kitPhrase, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(kit)
	if err != nil {
		t.Fatal(err)
	}
	harm := map[string][]byte{"cut": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 'x'), "empty": nil, "half": whole[:len(whole)/2]}
	for i := 100; i < len(whole); i += len(whole) / 3 {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 4
		harm[string(rune('a'+i%26))+" flipped"] = flipped
	}
	for name, text := range harm {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "out")
		if _, err := UnpackKit(path, kitPhrase, to); !errors.Is(err, ErrNoKit) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s: something was unpacked", name)
		}
	}
	if _, err := UnpackKit(kit, "another horse battery", filepath.Join(dir, "out")); !errors.Is(err, ErrNoKit) {
		t.Errorf("another passphrase: %v", err)
	}
	if _, err := MakeKit(KitOptions{Config: kitConfig4(t, ""), Out: filepath.Join(dir, "short"), Passphrase: "short", Now: time.Now()}); err == nil {
		t.Error("a short passphrase was taken")
	}
}

// A kit without the key would be found out too late.
func TestNoKitWithoutTheKey(t *testing.T) {
	config := kitConfig4(t, "processors: [{kind: age, recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]}]\n")
	out := filepath.Join(t.TempDir(), "kit")
	if _, err := MakeKit(KitOptions{Config: config, Out: out, Passphrase: kitPhrase, Now: time.Now()}); err == nil || !strings.Contains(err.Error(), "identity_file") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("it was written all the same")
	}
}

// TestKitHoldsTheGroupsStorages: a storage that only the group's settings name is in a kit, with its secrets; one that the
// file names, too, is there as the file has it.
func TestKitHoldsTheGroupsStorages(t *testing.T) {
	config := kitConfig4(t, "processors: [{kind: zstd}]\n")
	secret := filepath.Join(t.TempDir(), "far")
	if err := os.WriteFile(secret, []byte("far-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := configs.Settings{
		Storages: []configs.Storage{
			{Name: "far", Kind: "s3", Endpoint: "https://far.example", Bucket: "books", Region: "us-east-1", PartSize: 8 << 20, AccessKey: configs.NewSecret("id"), SecretKey: configs.NewSecret("file:" + secret)},
			{Name: "disk", Kind: "local", Path: "/elsewhere"},
		},
		Databases: []configs.Database{{Name: "pg1.books", DSN: configs.NewDSN("file:/etc/fencepost/pg1.dsn"), DBName: "books"}},
	}
	kit := filepath.Join(t.TempDir(), "kit.age")
	content, err := MakeKit(KitOptions{Config: config, Out: kit, Passphrase: kitPhrase, Now: time.Now(), Settings: &settings, Kept: &settings})
	if err != nil {
		t.Fatal(err)
	}
	if len(content.Places) != 4 || content.Places["far"] != StorageMark(settings.Storages[0]) || content.Places["disk"] == StorageMark(settings.Storages[1]) {
		t.Errorf("places %v", content.Places)
	}
	if !slices.Equal(content.Storages, []string{"disk", "cloud", "box", "far"}) || strings.Contains(strings.Join(content.Warnings, "\n"), "settings") {
		t.Errorf("content %+v", content)
	}
	path, err := UnpackKit(kit, kitPhrase, filepath.Join(t.TempDir(), "here"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.LoadWith(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := configs.LoadSettings(filepath.Join(filepath.Dir(path), "settings.yaml")); err != nil || kept.Text() != settings.Text() {
		t.Errorf("the settings in the kit: %v\n%s", err, kept.Text())
	}
	if got, err := c.Storages[3].SecretKey.Resolve(); err != nil || got != "far-secret" || c.Storages[0].Path != "/srv/x" {
		t.Errorf("far's secret is %q, %v; disk is at %s", got, err, c.Storages[0].Path)
	}
}

// A node that encrypts with a passphrase, and keeps the identity that opens older backups, gives both to its kit.
func TestKitHoldsEachKey(t *testing.T) {
	config := kitConfig4(t, "processors: [{kind: age, identity_file: ID, passphrase_file: PHRASE}]\n")
	phrase := filepath.Join(filepath.Dir(config), "phrase")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{phrase: "staple battery horse\n", config: strings.ReplaceAll(string(text), "PHRASE", phrase)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kit := filepath.Join(t.TempDir(), "kit.age")
	if _, err := MakeKit(KitOptions{Config: config, Out: kit, Passphrase: kitPhrase, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	path, err := UnpackKit(kit, kitPhrase, filepath.Join(t.TempDir(), "here"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.LoadWith(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Processors[0]
	for _, file := range []string{p.IdentityFile, p.PassphraseFile} {
		if _, err := os.Stat(file); file == "" || err != nil {
			t.Errorf("the kit's configuration names key file %q: %v", file, err)
		}
	}
	if _, err := OpenProcessor(p); err != nil {
		t.Errorf("the keys of the kit open nothing: %v", err)
	}
}
