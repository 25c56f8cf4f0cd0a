package cli

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// backupsOutput is a list of backups.
type backupsOutput []api.Backup

func (r *root) backupListCommand() *cobra.Command {
	var filter api.BackupFilter
	cmd := &cobra.Command{Use: "list [DATABASE]", Short: "List the backups, newest first", Args: arguments(0, 1)}
	cmd.Flags().IntVar(&filter.Limit, "limit", 0, "at most so many, 0 for all")
	watch := watchFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if filter.Limit < 0 {
			return &api.Error{Code: api.CodeUsage, Message: "--limit: want a number from 0"}
		}
		if len(args) > 0 {
			filter.Database = args[0]
		}
		return show(cmd.Context(), r, *watch, api.BackupsPath(filter), func(b []api.Backup) output { return backupsOutput(b) })
	}
	return cmd
}

func (b backupsOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"BACKUP", "DATABASE", "STATE", "AS OF", "SIZE", "STORED", "STORAGES", "TOOK"}, none: "no backups"}
	for _, x := range b {
		t.rows = append(t.rows, []string{
			x.ID, x.Database, stateOf(x), ago(x.AsOf, now), sizeOf(x.RawBytes), sizeOf(x.StoredBytes), copies(x), took(x),
		})
	}
	t.write(w)
}

// stateOf says beside its state why a backup does not count as one of its database.
func stateOf(b api.Backup) string {
	switch {
	case len(b.Suspect) > 0 && !b.Accepted:
		return b.State + " (suspect)"
	case b.Partial != "":
		return b.State + " (partial)"
	}
	return b.State
}

// copies names the storages; one without a good copy has its state behind it.
func copies(b api.Backup) string {
	var names []string
	for _, c := range b.Storages {
		name := c.Storage
		if c.State != "present" {
			name += " (" + c.State + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func sizeOf(n int64) string {
	if n == 0 {
		return ""
	}
	return size(n)
}

func took(b api.Backup) string {
	if b.DurationMS == 0 {
		return ""
	}
	return span(time.Duration(b.DurationMS) * time.Millisecond)
}
