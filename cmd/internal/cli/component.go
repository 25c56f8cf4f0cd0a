package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

type componentsOutput []api.Component

func (r *root) componentCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List the components of this node", Args: arguments(0, 0)},
		func([]string) string { return api.PathComponents }, func(c []api.Component) output { return componentsOutput(c) })
	return group("component", "Look at the autonomous components, run and pause them", ls, r.runComponentCommand(),
		r.pauseCommand("pause COMPONENT", "Have no node claim anything new for a component", true),
		r.pauseCommand("resume COMPONENT", "Let all nodes claim for a component again", false))
}

func (r *root) pauseCommand(use, short string, on bool) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: arguments(1, 1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		got, err := c.PauseComponent(cmd.Context(), args[0], on)
		if err != nil {
			return err
		}
		return r.print(componentsOutput{got})
	}
	return cmd
}

func (c componentsOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"COMPONENT", "STATE", "CLAIMS", "DONE", "FAILED", "STALE", "LOST", "NOT STOPPED"}, none: "no components"}
	for _, x := range c {
		state := "runs"
		switch {
		case x.Paused:
			state = "paused"
		case x.Fenced:
			state = "fenced"
		}
		t.rows = append(t.rows, []string{x.Name, state, number(x.Claims), number(x.Done), number(x.Failed), number(x.Stale), number(x.Lost), number(x.NotStopped)})
	}
	t.write(w)
}
