package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// TestObjectLock: what a bucket locks is not deleted, whoever asks, and retention says until when; it can be restored.
func TestObjectLock(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 1))
	cloud := startGateway(t).bucket(t, "cloud", ", lock: {mode: governance, days: 2}", "--object-lock-enabled-for-bucket")
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}, storages: cloud,
		extra: "retention: [{database: shop, last: 1, unverified: true, max_percent: 100}]\nbackup: {delete_delay: 0s}\n"})
	c.up()
	for range 2 {
		c.finishes("n1", c.backup("n1").ID)
	}
	list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{})
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	old := list[1].ID
	run(t, command, "--socket", c.socket("n1"), "backup", "delete", old, "--now").complains(t, 1, "backup "+old+" is locked in storage cloud until 20", "the storage's lock")
	if out, err := c.fencepost("n1", "prune", "shop"); err != nil || !strings.Contains(out, "locked until 20") || strings.Contains(out, "remove") {
		t.Errorf("%s%v", out, err)
	}
	if _, err := c.fencepost("n1", "prune", "shop", "--confirm"); err != nil {
		t.Error(err)
	}
	c.clean("n1", "cloud")
	if list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{}); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	c.restored("n1", old, dsn)
}

// TestAppendOnlyCredentials: with credentials that may not delete, and others that may not even abort an upload, backups are
// made and cancelled all the same; what is deleted becomes void there, and stays.
func TestAppendOnlyCredentials(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 16))
	gw := startGateway(t)
	rights := []string{"s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:ListBucketMultipartUploads"}
	disk := t.TempDir()
	c := newCluster(t, options{nodes: 1, dsns: map[string]string{"shop": dsn}, extra: "processors: []\nbackup: {rate_limit: 2MiB}\n",
		storages: gw.limited(t, "vault", ", append_only: true, part_size: 5MiB", append(rights, "s3:AbortMultipartUpload")...) +
			gw.limited(t, "slot", ", append_only: true, part_size: 5MiB", rights...) + fmt.Sprintf("- {name: disk, kind: local, path: %s}\n", disk)})
	if s := run(t, command, "storage", "test", "vault", "--config", c.file("n1")); s.code != 0 || !strings.Contains(s.out, "left behind") {
		t.Errorf("%+v", s)
	}
	if s := run(t, command, "storage", "test", "slot", "--config", c.file("n1")); s.code != 1 || !strings.Contains(s.out, "an unfinished upload was left in the bucket") {
		t.Errorf("credentials that may not abort: %+v", s)
	}
	c.up()
	cut := c.reaches("n1", c.backup("n1").ID, "uploading", func(t api.Task) bool { return t.Progress.Stored["slot"] > 6<<20 })
	if out, err := c.fencepost("n1", "cancel", cut.ID, "--wait"); err != nil {
		t.Errorf("%s%v", out, err)
	}
	if gone, err := c.client("n1").Task(c.ctx, cut.ID); err != nil || gone.State != "cancelled" {
		t.Errorf("an abort that is refused: %+v, %v", gone, err)
	}
	for range 2 {
		c.finishes("n1", c.backup("n1").ID)
	}
	list, err := c.client("n1").Backups(c.ctx, api.BackupFilter{})
	if err != nil || len(list) != 2 || len(list[0].Storages) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	old := list[1].ID
	if out, err := c.fencepost("n1", "backup", "delete", old, "--now", "--wait"); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	for _, name := range []string{"vault", "slot"} {
		out, err := c.fencepost("n1", "storage", "check", name)
		if err != nil || !strings.Contains(out, "kept") || !strings.Contains(out, old) || strings.Contains(out, "partial") {
			t.Errorf("%s: %s%v", name, out, err)
		}
	}
	c.clean("n1", "disk")
	log, err := os.ReadFile(c.proc("n1").log)
	if err != nil || !strings.Contains(string(log), "the storage is append-only") || !strings.Contains(string(log), "an unfinished upload was left in the bucket") {
		t.Errorf("the log does not say what stays: %v", err)
	}
	c.restored("n1", list[0].ID, dsn)
}
