package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// backupOutput is one backup with everything.
type backupOutput api.Backup

func (r *root) backupShowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show BACKUP", Short: "Show one backup and its copies", Args: arguments(1, 1)}
	return live(r, cmd, func(args []string) string { return api.BackupPath(args[0]) }, func(b api.Backup) output { return backupOutput(b) })
}

func (b backupOutput) text(w io.Writer, now time.Time) {
	x := api.Backup(b)
	var f facts
	f.add("backup", x.ID)
	f.add("database", x.Database)
	f.add("state", x.State)
	f.add("token", number(x.Token))
	f.add("as of", ago(x.AsOf, now))
	f.add("holds", x.Partial)
	f.add("size", sizeOf(x.RawBytes))
	f.add("sha256", x.SHA256)
	f.add("created", ago(&x.Created, now))
	f.add("took", took(x))
	f.add("verified", ago(x.Verified, now))
	f.add("roles of the server", x.Globals)
	f.add("pinned", yes(x.Pinned))
	f.add("note", x.Note)
	f.add("marked by", x.MarkedBy)
	for _, why := range x.Suspect {
		f.add("suspect", why)
	}
	f.add("accepted", yes(x.Accepted))
	for _, c := range x.Storages {
		state := c.State
		if c.Bytes > 0 {
			state += ", " + size(c.Bytes)
		}
		if c.Error != "" {
			state += ": " + c.Error
		}
		f.add("copy in "+c.Storage, state)
	}
	f.write(w)
}
