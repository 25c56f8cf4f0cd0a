package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// completeWithin bounds how long a shell waits for names.
const completeWithin = 2 * time.Second

// newest bounds how many backups and tasks a shell offers.
const newest = 50

// names gives what an argument can be; args are those before it.
type names func(ctx context.Context, c *api.Client, args []string) ([]string, error)

// arguments that a daemon knows, by their word in the usage of a command: DATABASE, BACKUP and so on. NAME and ID mean what the
// group of the command is about.
var completed = map[string]names{
	"DATABASE": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := c.Databases(ctx)
		return eachName(list, func(d api.Database) string { return d.Name }), err
	},
	"BACKUP": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := c.Backups(ctx, api.BackupFilter{Limit: newest})
		return eachName(list, func(b api.Backup) string { return b.ID + "\t" + b.Database }), err
	},
	"TASK": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := c.Tasks(ctx, api.TaskFilter{Limit: newest})
		return eachName(list, func(t api.Task) string { return t.ID + "\t" + t.Type + " " + t.Database + ", " + t.State }), err
	},
	"NODE": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := c.Members(ctx)
		return eachName(list, func(m api.Member) string { return m.Node }), err
	},
	"STORAGE": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		o, err := c.Overview(ctx)
		return eachName(o.Storages, func(s api.StorageState) string { return s.Name }), err
	},
	"SCHEDULE": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := api.Get[[]api.Schedule](ctx, c, api.PathSchedules)
		return eachName(list, func(s api.Schedule) string { return s.Name }), err
	},
	"COMPONENT": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := api.Get[[]api.Component](ctx, c, api.PathComponents)
		return eachName(list, func(x api.Component) string { return x.Name }), err
	},
	"SERVER": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := c.Servers(ctx)
		return eachName(list, func(s api.Server) string { return s.Name }), err
	},
	"USER": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := c.Users(ctx)
		return eachName(list, func(u api.User) string { return u.Name }), err
	},
	"TOKEN": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := c.Tokens(ctx)
		return eachName(list, func(t api.Token) string { return t.ID + "\t" + t.Name + " of " + t.User }), err
	},
	"APPROVAL": func(ctx context.Context, c *api.Client, _ []string) ([]string, error) {
		list, err := c.Approvals(ctx)
		list = slices.DeleteFunc(list, func(a api.Approval) bool { return !a.Waits() })
		return eachName(list, func(a api.Approval) string { return a.ID + "\t" + a.Text }), err
	},
	"KIND": func(context.Context, *api.Client, []string) ([]string, error) { return configs.Kinds(), nil },
	"SETTING": func(ctx context.Context, c *api.Client, args []string) ([]string, error) {
		all, err := c.Settings(ctx)
		var list []string
		for _, s := range all.Settings {
			if len(args) > 0 && s.Kind == args[0] {
				list = append(list, s.Name)
			}
		}
		return list, err
	},
}

func eachName[T any](list []T, name func(T) string) (out []string) {
	for _, x := range list {
		out = append(out, name(x))
	}
	return out
}

// words of the usage of cmd for the argument at a place: DATABASE and BACKUP of "restore DATABASE|BACKUP".
func wordsAt(cmd *cobra.Command, at int) []string {
	var places []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(strings.Trim(word, "["), "-") {
			break // flags come last
		}
		places = append(places, word)
	}
	if at >= len(places) || cmd.Name() == "add" || cmd.Name() == "create" && places[at] == "NAME" { // a new name
		return nil
	}
	var list []string
	for word := range strings.SplitSeq(strings.Trim(places[at], "[].="), "|") {
		if word == "NAME" || word == "ID" {
			_, top, _ := strings.Cut(cmd.CommandPath(), " ")
			word, _, _ = strings.Cut(strings.ToUpper(top), " ")
		}
		list = append(list, word)
	}
	return list
}

// offer has a shell offer what the daemon knows for the arguments of cmd, and for its flags --database and --storage. Without a
// daemon that answers nothing is offered.
func (r *root) offer(cmd *cobra.Command) {
	ask := func(cmd *cobra.Command, words, args []string) ([]string, cobra.ShellCompDirective) {
		if r.findServer() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		c := r.client()
		defer c.Close()
		var list []string
		for _, word := range words {
			some, err := completed[word](ctx, c, args)
			if err != nil {
				cobra.CompDebugln(err.Error(), false)
			}
			for _, line := range some {
				name, about, _ := strings.Cut(line, "\t")
				list = append(list, strings.TrimSuffix(printable(name)+"\t"+printable(about), "\t"))
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	known := func(words []string) []string {
		return slices.DeleteFunc(words, func(w string) bool { return completed[w] == nil })
	}
	if len(cmd.ValidArgs) == 0 && len(cmd.Commands()) == 0 {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			words := wordsAt(cmd, len(args))
			if len(words) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			if words = known(words); len(words) == 0 {
				return nil, cobra.ShellCompDirectiveDefault // a file, maybe
			}
			return ask(cmd, words, args)
		}
	}
	for _, flag := range []string{"database", "storage"} {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Value.Type() != "stringArray" { // those of init are new ones
			word := strings.ToUpper(flag)
			_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				return ask(cmd, []string{word}, args)
			}) // it is an error only for a flag that is not there
		}
	}
	for _, below := range cmd.Commands() {
		r.offer(below)
	}
}
