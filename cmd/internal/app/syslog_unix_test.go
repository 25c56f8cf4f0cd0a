//go:build !windows && !plan9

package app

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/audit"
	"github.com/fencepost/fencepost/cmd/internal/kept"
)

// TestAuditInTheSystemsLog: each record goes to the system's log as it goes into the node's file, whole, once, and as a
// notice of the facility auth; a log that is not there is said, and the file grows all the same.
func TestAuditInTheSystemsLog(t *testing.T) {
	dir := t.TempDir()
	log, err := net.ListenPacket("unixgram", filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	say, err := systemLogAt("unixgram", log.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	trail := audit.New(&kept.Memory{}, "n1", time.Now)
	c, err := audit.OpenCopy(trail, filepath.Join(dir, "audit.jsonl"), say)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, action := range []string{"backup.delete", "restore.create"} {
		made, err := trail.Append(t.Context(), audit.Entry{Actor: "ann", Action: action, Target: "b1", Phase: audit.Asked})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a record is copied once
			if err := c.CatchUp(); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 64<<10)
		n, _, err := log.ReadFrom(line)
		if err != nil {
			t.Fatal(err)
		}
		const priority = "<37>" // auth (4), notice (5)
		text := string(line[:n])
		head, record, found := strings.Cut(text, "]: ")
		if !found || !strings.HasPrefix(head, priority) || !strings.Contains(head, " fencepost[") {
			t.Errorf("no line of ours: %q", text)
		}
		var got audit.Line
		if err := json.Unmarshal([]byte(record), &got); err != nil || got.Record == nil || got.Record.Seq != made.Seq || got.Record.Hash != made.Hash || got.Record.Action != action {
			t.Errorf("%q, %v", text, err)
		}
	}
	if _, err := systemLogAt("unixgram", filepath.Join(dir, "nobody")); err == nil || !strings.Contains(err.Error(), "audit.syslog") {
		t.Errorf("a log that is not there: %v", err)
	}
	if say, err := systemLog(false); say != nil || err != nil {
		t.Error("a log that is not wanted is there")
	}
}
