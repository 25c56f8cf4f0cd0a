package cli

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox/dropboxtest"
)

// changing is what real files differ in from run to run: times, ids, and how long something took.
var changing = []struct {
	is   *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{16,}\b`), "DRAWN"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "DRAWN"},
	{regexp.MustCompile(`"\d+:\d+"`), `"DEVICE:INODE"`},
	{regexp.MustCompile(`"(took|days_left)": \d+`), `"$1": CHANGES`},
	{regexp.MustCompile(`"(go|system)": "[^"]+"`), `"$1": CHANGES`},
	{regexp.MustCompile(`http://127\.0\.0\.1:[^\s"]+`), "URL"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
}

// TestGoldenOfPlaces runs the command lines of testdata/places/*.txt, which need no daemon but real files: all of one file in
// one folder, DIR, one after the other. In it are a configuration, n1.yaml, and the root of its storage, disk; another, box.yaml,
// with a storage box whose secret is in box.token, and whose next one is in the file next; and a passphrase, phrase. A person who
// types CODE has opened the page that was printed.
func TestGoldenOfPlaces(t *testing.T) {
	box, err := dropboxtest.New(dropboxtest.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(box)
	defer web.Close()
	dirs := map[string]string{} // by the test of each file
	golden(t, "testdata/places/*.txt", func(t *testing.T, typed string, args []string) result {
		dir := dirs[t.Name()]
		if dir == "" {
			dir = t.TempDir()
			dirs[t.Name()] = dir
			config := fmt.Sprintf("node: n1\nhome: %s/home\nstorages:\n- {name: disk, kind: local, path: %s/disk}\n", dir, dir)
			for _, sub := range []string{"home", "disk", "env"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range map[string]string{
				"n1.yaml": config, "phrase": "correct horse battery\n", "box.token": "revoked\n", "next": dropboxtest.DefaultRefreshToken + "\n",
				"box.yaml": fmt.Sprintf("node: n1\nstorages:\n- {name: box, kind: dropbox, app_key: %s, refresh_token: \"file:%s/box.token\", endpoint: %q}\n", dropboxtest.DefaultAppKey, dir, web.URL),
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			signers := offline.Signers{Cluster: strings.Repeat("1a", 16), Keys: map[string]string{}}
			if err := signers.Write(filepath.Join(dir, "home", offline.SignersName)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "DIR", dir)
		}
		env, stdout, stderr := world("/nowhere/fencepost.sock", typed) // whatever daemon this machine has
		if typed == "CODE\n" {
			env.Stdin = &person{screen: stderr}
		}
		exit := Main(t.Context(), args, env)
		r := result{stdout.String(), stderr.String(), exit}
		for _, text := range []*string{&r.stdout, &r.stderr} {
			*text = strings.ReplaceAll(*text, dir, "DIR")
			for _, c := range changing {
				*text = c.is.ReplaceAllString(*text, c.says)
			}
		}
		return r
	})
}
