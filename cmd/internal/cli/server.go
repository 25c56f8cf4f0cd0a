package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

type serversOutput []api.Server

func (r *root) serverCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List the servers of the settings with the databases that were found on them", Args: arguments(0, 0)},
		func([]string) string { return api.PathServers }, func(s []api.Server) output { return serversOutput(s) })
	look := &cobra.Command{Use: "look SERVER", Short: "Have a server be asked for its databases now, and not within the hour", Args: arguments(1, 1)}
	look.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		s, err := c.LookAtServer(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return r.print(serversOutput{s})
	}
	return group("server", "Look at servers that own databases by pattern", ls, look)
}

func (s serversOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"SERVER", "LOOKED", "BY", "DATABASE", "ON THE SERVER", "SINCE", "STATE"}, none: "no servers: see servers in configs/settings.example.yaml"}
	for _, x := range s {
		lead := []string{x.Name, ago(x.Looked, now), x.By}
		if x.Problem != "" {
			t.rows = append(t.rows, append(lead, "", "", ago(x.Since, now), "does not answer: "+x.Problem))
			lead = []string{" ", " ", " "}
		}
		for _, d := range x.Databases {
			state := "there"
			if d.Gone != nil {
				state = "gone " + ago(d.Gone, now)
			}
			t.rows = append(t.rows, append(lead, d.Name, d.DBName, ago(&d.Since, now), state))
			lead = []string{" ", " ", " "}
		}
		if len(lead) > 0 && lead[0] == x.Name {
			t.rows = append(t.rows, append(lead, "", "", "", ""))
		}
	}
	t.write(w)
}

type databasesOutput []api.Database

func (r *root) databaseCommand() *cobra.Command {
	ls := live(r, &cobra.Command{Use: "ls", Short: "List the databases that the node knows, and where they are from", Args: arguments(0, 0)},
		func([]string) string { return api.PathDatabases }, func(d []api.Database) output { return databasesOutput(d) })
	forget := &cobra.Command{
		Use: "forget DATABASE", Short: "Expect nothing more of a database that is gone from its server; its backups stay", Args: arguments(1, 1),
	}
	forget.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		ended, err := c.ForgetDatabase(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return r.print(forgottenDatabaseOutput(ended))
	}
	return group("database", "Look at databases", ls, r.databaseTestCommand(), forget)
}

func (d databasesOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"DATABASE", "FROM", "SCHEDULES", "RETENTION", "RPO", "LABELS", "STATE"}, none: "no databases"}
	for _, x := range d {
		from, state, rpo := x.From, "", ""
		if x.Server != "" {
			from += " " + x.Server
		}
		switch {
		case x.Gone != nil:
			state = "gone"
		case x.Scratch:
			state = "scratch"
		}
		if x.RPOMS > 0 {
			rpo = span(time.Duration(x.RPOMS) * time.Millisecond)
		}
		retained := ""
		if x.Retained {
			retained = "yes"
		}
		t.rows = append(t.rows, []string{x.Name, from, strings.Join(x.Schedules, ", "), retained, rpo, strings.Join(x.Labels, ", "), state})
	}
	t.write(w)
}

// forgottenDatabaseOutput is of a database that is expected no more.
type forgottenDatabaseOutput api.Ended

func (f forgottenDatabaseOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "Database %s is forgotten; its backups stay.\n", printable(f.Name))
}
