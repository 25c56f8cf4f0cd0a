package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// usageOutput is what lies where.
type usageOutput api.Usage

func (r *root) usageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what lies in the storages, of which databases, how it grows, and when a storage is full",
		Long: "Add up what the ledger knows of: the bytes and backups in each storage, and of each database. GROWS is what came in the\n" +
			"last week less what went, by day; FULL is when no room is left if that goes on, for storages that can tell their room.\n" +
			"Nothing is said of either before three days are known.",
		Args: arguments(0, 0),
	}
	return live(r, cmd, func([]string) string { return api.PathUsage }, func(u api.Usage) output { return usageOutput(u) })
}

func (u usageOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"STORAGE", "BACKUPS", "SIZE", "GROWS", "FREE", "FULL"}, none: "no storages"}
	for _, s := range u.Storages {
		free := ""
		if s.Free != nil {
			free = size(*s.Free)
		}
		t.rows = append(t.rows, []string{s.Storage, fmt.Sprint(s.Backups), size(s.Bytes), growth(s.PerDay), free, ahead(s.Full, now)})
	}
	t.write(w)
	if len(u.Databases) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = table{heading: []string{"DATABASE", "COPIES", "SIZE", "GROWS"}}
	for _, d := range u.Databases {
		t.rows = append(t.rows, []string{d.Database, fmt.Sprint(d.Copies), size(d.Bytes), growth(d.PerDay)})
	}
	t.write(w)
}

func growth(perDay int64) string {
	switch {
	case perDay == 0:
		return ""
	case perDay < 0:
		return "-" + size(-perDay) + " a day"
	}
	return size(perDay) + " a day"
}
