package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// membersOutput is a list of members.
type membersOutput []api.Member

func (r *root) membersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the members of the group",
		Long: "List the members of the group. The leader has a *, the node that answers is marked \"this\". LOG is a member's part in\n" +
			"the log: it votes, follows, or is fed by one of those. Nodes that are refused because of their certificates are listed too,\n" +
			"and below the list why.",
		Args: arguments(0, 0),
	}
	return live(r, cmd, func([]string) string { return api.PathMembers }, func(m []api.Member) output { return membersOutput(m) })
}

func (m membersOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"NODE", "", "STATE", "ROLE", "LOG", "RUN", "EPOCH", "GOSSIP", "CLUSTER", "COMPONENTS", "VERSION", "JOINED"}, none: "no members"}
	for _, x := range m {
		t.rows = append(t.rows, []string{
			x.Node, marks(x), memberState(x), x.Role, logPart(x), short(x.Run), number(x.Epoch),
			x.GossipAddr, x.ClusterAddr, strings.Join(x.Components, ","), x.Version, ago(x.JoinedAt, now),
		})
	}
	t.write(w)
	for _, x := range m {
		if x.Problem != "" {
			for _, line := range wrap(printable(x.Node+": "+x.Problem), widthOf(w)) {
				fmt.Fprintln(w, line)
			}
		}
	}
}

// logPart is a member's part in the log.
func logPart(m api.Member) string {
	switch {
	case m.State == api.MemberRefused:
		return ""
	case m.Voter:
		return "votes"
	case m.Fed:
		return "fed"
	}
	return "follows"
}

func marks(m api.Member) string {
	switch {
	case m.Leader && m.Self:
		return "* this"
	case m.Leader:
		return "*"
	case m.Self:
		return "this"
	default:
		return ""
	}
}

func memberState(m api.Member) string {
	switch {
	case m.State != "":
		return m.State
	case m.Suspected:
		return "suspected"
	case m.Ready:
		return "ready"
	default:
		return "joined"
	}
}
