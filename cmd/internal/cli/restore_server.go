package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// restoringServer is the restore of a whole server.
type restoringServer struct {
	*root
	stores *storesFlags
	want   offline.ServerRestore
	asOf   string
	sure   string
	dryRun bool
}

// serverFlags are those of a restore that concern a whole server only.
func (r *root) serverFlags(cmd *cobra.Command) *restoringServer {
	c := &restoringServer{root: r}
	f := cmd.Flags()
	f.Var(serverOrAddress{&c.want.Server, &r.remote.server}, "server", "a whole server: its name in the group's settings, or that of a database on it; with :// the daemon that is asked, as everywhere")
	f.StringVar(&c.asOf, "as-of", "", "a whole server: nothing younger than this, 2026-05-02, \"2026-05-02 14:30\" or 2026-05-02T14:30:00Z (default now)")
	f.StringVar(&c.want.File, "plan", "", "a whole server: file that keeps the plan and what is done of it (default restore-SERVER.json, here)")
	f.BoolVar(&c.want.NoGlobals, "no-globals", false, "a whole server: make no roles and tablespaces")
	f.BoolVar(&c.want.SkipExisting, "skip-existing", false, "a whole server: leave databases that are there as they are")
	return c
}

// serverOrAddress is the value of --server: PostgreSQL's, by name, or as for all commands the address of a daemon.
type serverOrAddress struct{ name, address *string }

// Set tells them apart.
func (s serverOrAddress) Set(value string) error {
	if strings.Contains(value, "://") {
		*s.address = value
	} else {
		*s.name = value
	}
	return nil
}

func (s serverOrAddress) String() string {
	if s.name == nil {
		return ""
	}
	return *s.name
}

// Type is what the help calls it.
func (serverOrAddress) Type() string { return "string" }

// parseTime reads a moment that a person has typed, in the zone of now.
func parseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("--as-of: %q is no moment", text), Hint: "2026-05-02, \"2026-05-02 14:30\" or 2026-05-02T14:30:00Z"}
}

func (c *restoringServer) run(ctx context.Context) (err error) {
	if c.asOf != "" {
		if c.want.AsOf, err = parseTime(c.asOf, c.Now()); err != nil {
			return err
		}
	}
	if c.want.File == "" {
		c.want.File = "restore-" + fileName(c.want.Server) + ".json"
	}
	if c.want.Shelf, err = c.stores.open(ctx, c.root); err != nil {
		return err
	}
	c.want.Storages, c.want.To, c.want.Now = c.stores.storages, c.stores.to, c.Now()
	run, err := offline.OpenServer(ctx, c.want)
	if err != nil {
		return hinted(err)
	}
	defer run.Close()
	plan := c.output(run)
	if c.dryRun || plan.done() {
		return c.print(plan)
	}
	if err := c.confirm(plan); err != nil {
		return err
	}
	err = run.Do(ctx, c.tell)
	out := c.output(run)
	if printErr := c.print(out); err == nil {
		return printErr
	}
	var own interface{ Hint() string }
	if !errors.As(err, &own) || own.Hint() == "" {
		return &api.Error{Code: api.CodeFailed, Message: err.Error(), Hint: "the same command goes on where this one ended: what is done is in " + c.want.File}
	}
	return hinted(err)
}

// fileName is a name as a part of a file's name.
func fileName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '/' || c == '\\' || c < ' ' {
			return '_'
		}
		return c
	}, name)
}

// confirm shows the plan, and has a person type the server's name.
func (c *restoringServer) confirm(plan serverOutput) error {
	name := c.want.Server
	switch {
	case c.sure == name:
		return nil
	case c.sure != "":
		return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("--yes names %s, and the restore is of server %s: nothing was done", c.sure, name), Hint: "--yes " + name + " agrees to it"}
	case !c.Interactive:
		return &api.Error{Code: api.CodeUsage, Message: "this restores the server " + name + ", and nobody can be asked here", Hint: "--dry-run shows the plan; add --yes " + name}
	}
	var b strings.Builder
	plan.text(&b, c.Now())
	fmt.Fprint(c.Stderr, b.String())
	return c.typed(name, "This restores server "+name+" to "+plan.To+".")
}

// tell says what goes on.
func (c *restoringServer) tell(s offline.ServerStep) {
	switch {
	case s.Began:
		fmt.Fprintf(c.Stderr, "%s ...\n", printable(s.What))
	case s.Problem != nil:
		fmt.Fprintf(c.Stderr, "%s: %s\n", printable(s.What), printable(s.Problem.Error()))
	case s.Found:
		fmt.Fprintf(c.Stderr, "%s was done before\n", printable(s.What))
	default:
		fmt.Fprintf(c.Stderr, "%s is done\n", printable(s.What))
	}
}

// serverOutput is the plan, and what has been done of it.
type serverOutput struct {
	offline.ServerPlan
	Plan    string               `json:"plan"` // file
	Away    []offline.ShelfAway  `json:"away"`
	Roles   *offline.GlobalsDiff `json:"roles,omitempty"` // before anything was made
	Resumed bool                 `json:"resumed"`
}

func (c *restoringServer) output(run *offline.ServerRun) serverOutput {
	out := serverOutput{ServerPlan: run.Plan(), Plan: c.want.File, Away: run.Away(), Roles: run.Compared, Resumed: run.Resumed}
	if out.Away == nil {
		out.Away = []offline.ShelfAway{}
	}
	return out
}

func (o serverOutput) done() bool {
	return o.Left() == 0 && (o.Globals == "" || o.GlobalsDone != nil)
}

func (o serverOutput) text(w io.Writer, now time.Time) {
	fmt.Fprintf(w, "Server %s as of %s, to %s. The plan, and what is done of it, is in %s.\n", printable(o.Server), o.AsOf.UTC().Format(time.RFC3339), printable(o.To), printable(o.Plan))
	for _, a := range o.Away {
		fmt.Fprintf(w, "Not looked at: storage %s (%s).\n", printable(a.Storage), printable(a.Problem))
	}
	o.roles(w)
	t := table{heading: []string{"DATABASE", "BACKUP", "AS OF", "SIZE", "FROM", "STATE"}, none: "No database is restored."}
	for _, d := range o.Databases {
		state := "to do"
		switch {
		case d.Done != nil:
			state = "done"
		case d.Problem != "":
			state = d.Problem
		case d.Attempt != 0:
			state = "begun"
		}
		t.rows = append(t.rows, []string{d.Target, d.Backup, d.AsOf.UTC().Format(time.RFC3339) + ", " + ago(&d.AsOf, now), size(d.RawBytes), strings.Join(d.Storages, ", "), state})
	}
	t.write(w)
	for _, l := range o.Lacking {
		fmt.Fprintf(w, "Not restored: %s: %s.\n", printable(l.Target), printable(l.Why))
	}
	if o.done() {
		fmt.Fprintf(w, "All of the plan is done: %d databases.\n", len(o.Databases))
	}
}

// roles says what is made of the server's roles.
func (o serverOutput) roles(w io.Writer) {
	switch {
	case o.Globals == "":
		fmt.Fprintln(w, "Roles and tablespaces: none are made.")
	case o.GlobalsDone != nil:
		fmt.Fprintf(w, "Roles and tablespaces of backup %s: done.\n", o.Globals)
	case o.Roles != nil && len(o.Roles.Missing) == 0:
		fmt.Fprintf(w, "Roles and tablespaces of backup %s: none are missing.\n", o.Globals)
	case o.Roles != nil:
		fmt.Fprintf(w, "Roles and tablespaces of backup %s, to be made: %s.\n", o.Globals, printable(strings.Join(globalNames(o.Roles.Missing), ", ")))
	}
	if o.Roles == nil {
		return
	}
	if len(o.Roles.Differ) > 0 {
		fmt.Fprintf(w, "Different on the server, and left as it is (see globals diff): %s.\n", printable(strings.Join(globalNames(o.Roles.Differ), ", ")))
	}
	if names := withoutPassword(o.Roles.Missing); len(names) > 0 {
		fmt.Fprintf(w, "Without a password, since the backup has none: %s. They log in by one after ALTER ROLE name PASSWORD '...'.\n", printable(strings.Join(names, ", ")))
	}
}
