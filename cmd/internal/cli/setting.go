package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

func (r *root) settingCommand() *cobra.Command {
	return group("setting", "Single settings of the group; apply and export are for all of them", r.settingListCommand(), r.settingShowCommand(), r.settingSetCommand(), r.settingRemoveCommand())
}

// settingsOutput are settings, in the order of their kinds.
type settingsOutput []api.Setting

func (r *root) settingListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls [KIND]", Short: "List the settings of the group, or those of a kind",
		Long: "List the settings of the group, or those of a kind: " + strings.Join(configs.Kinds(), ", ") + ". What\n" +
			"each may say is in configs/settings.example.yaml. What the files of nodes name is not among them.",
		Args: arguments(0, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := r.settings(cmd.Context(), args)
		if err != nil {
			return err
		}
		return r.print(settingsOutput(all.Settings))
	}
	return cmd
}

// settings are those of the kind and the name that are given.
func (r *root) settings(ctx context.Context, args []string) (api.Settings, error) {
	if err := knownKind(args); err != nil {
		return api.Settings{}, err
	}
	c := r.client()
	defer c.Close()
	all, err := c.Settings(ctx)
	all.Settings = slices.DeleteFunc(all.Settings, func(s api.Setting) bool {
		return len(args) > 0 && s.Kind != args[0] || len(args) > 1 && s.Name != args[1]
	})
	return all, err
}

func knownKind(args []string) error {
	if len(args) == 0 || slices.Contains(configs.Kinds(), args[0]) {
		return nil
	}
	e := &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("there is no kind %q", args[0]), Hint: "want one of " + strings.Join(configs.Kinds(), ", ")}
	if args[0] == "user" {
		e.Hint = "users are accounts: fencepost user --help"
	}
	return e
}

func (s settingsOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"KIND", "NAME", "SAYS"}, none: "the group has no settings: fencepost apply -f DIR"}
	for _, x := range s {
		t.rows = append(t.rows, []string{x.Kind, x.Name, strings.Join(said(x), " ")})
	}
	t.write(w)
}

// said is what a setting says beside its name, as the command set takes it.
func said(s api.Setting) (list []string) {
	var spec map[string]any
	if json.Unmarshal(s.Spec, &spec) != nil {
		return []string{"(not understood by this version)"}
	}
	delete(spec, nameKey(s.Kind))
	flatten("", spec, func(key, value string) { list = append(list, key+"="+value) })
	return list
}

// flatten gives the values below v, by the dotted paths of their keys.
func flatten(path string, v any, each func(key, value string)) {
	section, ok := v.(map[string]any)
	if !ok {
		value := fmt.Sprint(v)
		if list, ok := v.([]any); ok {
			var parts []string
			for _, x := range list {
				parts = append(parts, fmt.Sprint(x))
			}
			value = strings.Join(parts, ",")
		}
		each(path, value)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		at := key
		if path != "" {
			at = path + "." + key
		}
		flatten(at, section[key], each)
	}
}

// nameKey is the key that names a setting of a kind.
func nameKey(kind string) string {
	if kind == "retention" {
		return "database"
	}
	return "name"
}

// settingOutput is one setting.
type settingOutput api.Setting

func (r *root) settingShowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show KIND NAME", Short: "Show a setting of the group", Args: arguments(2, 2)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := r.settings(cmd.Context(), args)
		if err != nil {
			return err
		}
		if len(all.Settings) == 0 {
			return noSetting(args[0], args[1])
		}
		return r.print(settingOutput(all.Settings[0]))
	}
	return cmd
}

func noSetting(kind, name string) error {
	return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no %s %q in the group's settings", kind, name), Hint: "fencepost setting ls " + kind + "; what is in a node's file is changed there"}
}

func (s settingOutput) text(w io.Writer, _ time.Time) {
	for _, line := range append([]string{nameKey(s.Kind) + "=" + s.Name}, said(api.Setting(s))...) {
		fmt.Fprintln(w, printable(line))
	}
}

func (r *root) settingSetCommand() *cobra.Command {
	var plan bool
	cmd := &cobra.Command{
		Use:   "set KIND NAME [KEY=VALUE]...",
		Short: "Make a setting of the group, or change some of its keys",
		Long: "Make a setting of the group, or change some keys of one that is there; it counts on all nodes, and at once. KEY is as in\n" +
			"configs/settings.example.yaml, with dots for what is inside (retention.daily=7); lists are written with commas, and KEY=\n" +
			"has what is the default. Secrets are references: file:PATH, env:NAME, command:PROGRAM.",
		Args: arguments(2, 1000),
	}
	cmd.Flags().BoolVar(&plan, "plan", false, "only tell what would be changed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := r.settings(cmd.Context(), args[:2])
		if err != nil {
			return err
		}
		was := api.Setting{Kind: args[0], Name: args[1], Spec: json.RawMessage("{}")}
		if len(all.Settings) > 0 {
			was = all.Settings[0]
		}
		next, err := changed(was, args[2:])
		if err != nil {
			return err
		}
		c := r.client()
		defer c.Close()
		do := c.ApplySettings
		if plan {
			do = c.PlanSettings
		}
		got, err := do(cmd.Context(), api.ApplySettings{Settings: []api.Setting{next}, Version: all.Version})
		if err != nil {
			return err
		}
		return r.print(appliedOutput{got, plan})
	}
	return cmd
}

// changed is a setting with other values of some keys.
func changed(s api.Setting, words []string) (api.Setting, error) {
	spec := map[string]any{}
	if err := json.Unmarshal(s.Spec, &spec); err != nil {
		return s, fmt.Errorf("read %s %s, which may be of a later version: %w", s.Kind, s.Name, err)
	}
	spec[nameKey(s.Kind)] = s.Name
	for _, word := range words {
		path, value, ok := strings.Cut(word, "=")
		if !ok || path == "" {
			return s, &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("%q: want KEY=VALUE", word), Hint: "such as rpo=26h; see configs/settings.example.yaml"}
		}
		in := spec
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			inner, ok := in[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
				in[key] = inner
			}
			in = inner
		}
		last := keys[len(keys)-1]
		if in[last] = value; value == "" {
			delete(in, last)
		}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return s, fmt.Errorf("encode %s %s: %w", s.Kind, s.Name, err)
	}
	s.Spec = text
	return s, nil
}

func (r *root) settingRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rm KIND NAME", Short: "Remove a setting of the group; backups stay",
		Args: arguments(2, 2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := knownKind(args); err != nil {
			return err
		}
		c := r.client()
		defer c.Close()
		got, err := c.RemoveSetting(cmd.Context(), args[0], args[1])
		if err != nil {
			return err
		}
		return r.print(endedOutput{got, strings.ToUpper(args[0][:1]) + args[0][1:]})
	}
	return cmd
}
