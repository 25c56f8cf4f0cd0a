package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// appliedOutput is what an apply did, or would do.
type appliedOutput struct {
	api.AppliedSettings
	plan bool
}

// MarshalJSON is that of the answer.
func (a appliedOutput) MarshalJSON() ([]byte, error) { return json.Marshal(a.AppliedSettings) }

func (r *root) applyCommand() *cobra.Command {
	var from string
	var plan bool
	var want api.ApplySettings
	cmd := &cobra.Command{
		Use:   "apply -f DIR",
		Short: "Have the group have the settings of files",
		Long: "Read settings (storages, servers, databases, schedules, retention, approvals, notifications, users: see\n" +
			"configs/settings.example.yaml) from a file, or from all files of a directory that end in .yaml or .yml, and have the group\n" +
			"have them, on all nodes: all of them, or nothing is changed; then the users. Applying the same again changes nothing. What\n" +
			"the files do not name stays, but with --prune it is removed; backups never are. Secrets are references (file:, env:,\n" +
			"command:) that each node follows for itself; the first password of a user is read here.",
		Args: arguments(0, 0),
	}
	cmd.Flags().StringVarP(&from, "file", "f", "", "file or directory with settings")
	cmd.Flags().BoolVar(&plan, "plan", false, "only tell what would be changed")
	cmd.Flags().BoolVar(&want.Prune, "prune", false, "remove settings that the files do not name")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if from == "" {
			return &api.Error{Code: api.CodeUsage, Message: "no settings were named", Hint: "name a file or a directory by -f"}
		}
		s, err := configs.LoadSettings(from)
		if err != nil {
			e := &api.Error{Code: api.CodeUsage, Message: strings.ReplaceAll(err.Error(), "\n", "; ")}
			if errors.Is(err, fs.ErrNotExist) {
				e.Hint = "name a file or a directory that is there; fencepost export -f " + from + " writes one of the settings that there are"
			}
			return e
		}
		want.Settings = []api.Setting{}
		for _, o := range s.Objects() {
			want.Settings = append(want.Settings, api.Setting(o))
		}
		c := r.client()
		defer c.Close()
		users, err := usersToApply(cmd.Context(), c, s.Users, want.Prune)
		if err != nil {
			return err
		}
		do := c.ApplySettings
		if plan {
			do = c.PlanSettings
		}
		got, err := do(cmd.Context(), want)
		if err == nil && !plan {
			err = users.carryOut(cmd.Context(), c)
		}
		if err != nil {
			return err
		}
		got.Changes, got.Same, got.Left = append(got.Changes, users.changes...), got.Same+users.same, got.Left+users.left
		return r.print(appliedOutput{got, plan})
	}
	return cmd
}

func (a appliedOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"", "KIND", "NAME", "KEYS"}, none: "nothing to change"}
	signs := map[string]string{api.SettingAdded: "+", api.SettingChanged: "~", api.SettingRemoved: "-"}
	for _, c := range a.Changes {
		t.rows = append(t.rows, []string{signs[c.Change], c.Kind, c.Name, strings.Join(c.Keys, ", ")})
	}
	t.write(w)
	done := "Changed"
	if a.plan {
		done = "Would change"
	}
	fmt.Fprintf(w, "\n%s %d, %d as they were, %d not named and left; version %d.\n", done, len(a.Changes), a.Same, a.Left, a.Version)
}

// exportOutput are the group's settings, or where they were written.
type exportOutput struct {
	api.Settings
	kept  configs.Settings
	files []string
}

// MarshalJSON is that of the answer, with the users.
func (e exportOutput) MarshalJSON() ([]byte, error) {
	out := struct {
		api.Settings
		Users []json.RawMessage `json:"users"`
	}{e.Settings, []json.RawMessage{}}
	for _, u := range e.kept.Users {
		out.Users = append(out.Users, userSpec(u))
	}
	return json.Marshal(out)
}

func (r *root) exportCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the settings of the group, as apply reads them",
		Long: "Write the settings of the group as one text, or with -f into files of a directory, one for each kind. Applying what was\n" +
			"exported changes nothing. What the files of nodes name is not among them, nor is a password; users are for admins.",
		Args: arguments(0, 0),
	}
	cmd.Flags().StringVarP(&to, "file", "f", "", "directory to write into; made when it is missing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := r.client()
		defer c.Close()
		got, err := c.Settings(cmd.Context())
		if err != nil {
			return err
		}
		out := exportOutput{Settings: got}
		if out.kept, err = settingsOf(got); err != nil {
			return err
		}
		kinds := configs.FileKinds()
		var refused *api.Error
		switch out.kept.Users, err = exportUsers(cmd.Context(), c); {
		case errors.As(err, &refused) && refused.Code == api.CodeForbidden:
			kinds = configs.Kinds() // what somebody may not see is not written as if there were none
		case err != nil:
			return err
		}
		if to != "" {
			if out.files, err = writeSettings(out.kept, kinds, to); err != nil {
				return err
			}
		}
		return r.print(out)
	}
	return cmd
}

// writeSettings writes a file for each of these kinds of which there is something. An older file of another kind is emptied: it would
// say otherwise.
func writeSettings(s configs.Settings, kinds []string, dir string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write the settings: %w", err)
	}
	for _, kind := range kinds {
		file := filepath.Join(dir, configs.ListOf(kind)+".yaml")
		text := s.Text(kind)
		if text == "" {
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			text = configs.ListOf(kind) + ": []\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return files, fmt.Errorf("write the settings: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

func (e exportOutput) text(w io.Writer, _ time.Time) {
	switch {
	case len(e.files) > 0:
		for _, f := range e.files {
			fmt.Fprintln(w, f)
		}
	case len(e.Settings.Settings)+len(e.kept.Users) == 0:
		fmt.Fprintln(w, "# the group has no settings: fencepost apply -f DIR")
	default:
		fmt.Fprint(w, e.kept.Text())
	}
}
