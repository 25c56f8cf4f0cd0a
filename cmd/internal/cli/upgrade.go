package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// upgradeOutput is which programs the nodes run.
type upgradeOutput api.Upgrade

func (r *root) upgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Show which version each node runs, and what stands against finalizing an upgrade",
		Long: "Show which version each node runs, which protocol the group writes (the version of all that its members exchange and\n" +
			"keep), and what stands against the next one.\n\n" +
			"A group is upgraded one node after the other: drain it, stop it, install the new version, start it, undrain it. Versions\n" +
			"whose protocols are neighbours work together, and the group goes on to write what the older one reads; until fencepost\n" +
			"upgrade finalize a node can go back to the old version.",
		Args: arguments(0, 0),
	}
	cmd.AddCommand(r.upgradeFinalizeCommand())
	return live(r, cmd, func([]string) string { return api.PathUpgrade }, func(u api.Upgrade) output { return upgradeOutput(u) })
}

func (r *root) upgradeFinalizeCommand() *cobra.Command {
	var want api.FinalizeUpgrade
	cmd := &cobra.Command{
		Use:   "finalize",
		Short: "Have the group write the protocol of the new version, when all nodes run it",
		Long: "Have the group write the protocol of the new version, when all nodes run it. There is no way back: from then on a node\n" +
			"with the old version is refused, and says so. A node that stays away stands against it, unless it is named by\n" +
			"--without; it needs the new version before it comes back. What is there already is not done again.",
		Args: arguments(0, 0),
	}
	cmd.Flags().StringSliceVar(&want.Without, "without", nil, "nodes that may be away, with commas between them")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := r.client()
		defer c.Close()
		u, err := c.FinalizeUpgrade(cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.print(upgradeOutput(u))
	}
	return cmd
}

func (u upgradeOutput) text(w io.Writer, _ time.Time) {
	var f facts
	f.add("protocol", protocolWords(api.Upgrade(u)))
	f.write(w)
	fmt.Fprintln(w)
	t := table{heading: []string{"NODE", "VERSION", "READS PROTOCOLS", "HERE"}}
	for _, p := range u.Programs {
		reads, here := "", "yes"
		if p.Protocol > 0 {
			reads = fmt.Sprintf("up to %d", p.Protocol)
		}
		if !p.Here {
			here = "no"
		}
		t.rows = append(t.rows, []string{p.Node, p.Version, reads, here})
	}
	t.write(w)
	if len(u.Against) > 0 {
		heading(w, "stands against finalizing it")
	}
	for _, why := range u.Against {
		fmt.Fprintln(w, "  "+printable(why))
	}
}

// protocolWords says what the group writes and what may be finalized.
func protocolWords(u api.Upgrade) string {
	switch {
	case u.Next == u.Protocol:
		return fmt.Sprint(u.Protocol)
	case len(u.Against) > 0:
		return fmt.Sprintf("%d, and %d when the upgrade is finalized", u.Protocol, u.Next)
	}
	return fmt.Sprintf("%d; all read %d: fencepost upgrade finalize", u.Protocol, u.Next)
}

// upgradeWords is the line of the status; empty when one version runs everywhere and all is finalized.
func upgradeWords(u api.Upgrade) string {
	versions := map[string]bool{}
	for _, p := range u.Programs {
		if p.Here {
			versions[p.Version] = true
		}
	}
	switch {
	case u.Next > u.Protocol && len(u.Against) == 0:
		return "protocol " + protocolWords(u)
	case len(versions) > 1 || u.Next > u.Protocol:
		return count(len(versions), "version") + " run, see fencepost upgrade"
	}
	return ""
}
