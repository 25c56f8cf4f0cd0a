package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestGroupAnew: every home of a group is lost; a kit and one storage give a new group what the lost one had agreed on, as the
// page says: its settings, a user, and its backups.
func TestGroupAnew(t *testing.T) {
	t.Parallel()
	recipient, identity := ageKey(t)
	lost := newCluster(t, options{nodes: 1, storages: " []\n", extra: encrypted(recipient, identity)})
	lost.up()
	at, dsn := t.TempDir(), database(t, bulk("goods", 1))
	put := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(ctx context.Context, args ...string) string {
		cmd := exec.CommandContext(ctx, command, args...)
		cmd.Env = append(os.Environ(), "FENCEPOST_SOCKET="+lost.socket("n1"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("fencepost %s: %s%v", strings.Join(args, " "), out, err)
		}
		return string(out)
	}
	settings := put(lost.dir, "settings.yaml", fmt.Sprintf("storages: [{name: near, kind: local, path: %s}]\ndatabases: [{name: shop, dsn: %q}]\n", at, "file:"+put(at+"/..", "dsn", dsn+"\n")))
	run(lost.ctx, "apply", "-f", settings)
	lost.until("the storage of the settings is there", func() bool {
		_, err := lost.client("n1").CreateBackup(lost.ctx, api.CreateBackup{Database: "shop"})
		return err == nil
	})
	var b api.Backup
	lost.until("there is a backup, and what the group keeps", func() bool {
		list, err := lost.client("n1").Backups(lost.ctx, api.BackupFilter{Database: "shop"})
		if err != nil || len(list) == 0 {
			return false
		}
		b = list[0]
		o, err := lost.client("n1").Overview(lost.ctx)
		return err == nil && len(o.GroupState) == 1 && o.GroupState[0].Object != ""
	})
	dir := t.TempDir()
	phrase := put(dir, "phrase", "correct horse battery\n")
	run(lost.ctx, "kit", "make", filepath.Join(dir, "shop.kit"), "--config", lost.file("n1"), "--passphrase-file", phrase)
	lost.end()

	c := newCluster(t, options{nodes: 1, storages: " []\n", extra: encrypted(recipient, identity)})
	for _, name := range []string{"shop.kit", "phrase"} {
		if err := os.Symlink(filepath.Join(dir, name), filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c.up()
	rehearsal{c: c}.follow("group-anew")
	c.until("the backup of the lost group is there", func() bool {
		got, err := c.client("n1").Backup(c.ctx, b.ID)
		return err == nil && got.Database == "shop"
	})
	c.restored("n1", b.ID, dsn)
}
