package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// groupRestore are the flags of group restore.
type groupRestore struct {
	offline.GroupStateOptions
	kit, phrase string
	over, yes   bool
}

func (r *root) groupRestoreCommand() *cobra.Command {
	var o groupRestore
	cmd := &cobra.Command{
		Use:   "restore --from STORAGE {--config FILE | --kit KIT}",
		Short: "Have a new group take over what a lost one has kept of itself",
		Long: "Read what a group that is no more has kept of itself in one of its storages (settings, users and tokens, pins, disabled\n" +
			"schedules, paused components), and have the group of the daemon take it over. Where the storage is and with what keys it\n" +
			"is read, the configuration of a node says, or a kit. The storages of the lost group that are named there, or in its\n" +
			"settings, become those of the new one, and the backups in them are its own: nobody else may be at work with them. A node\n" +
			"whose file names such a storage does not start before. The same again does what could not be done at first.\n\n" +
			"The newest state counts. One that is damaged, of a newer version, of another group, or that does not open is refused, and\n" +
			"the next older one is named: --object takes it. A group that has settings of its own refuses all of it, but with --over.",
		Args: arguments(0, 0),
	}
	f := cmd.Flags()
	f.StringVar(&o.Storage, "from", "", "`storage` that the state is read from")
	f.StringVar(&o.Config, "config", "", "configuration file that names the storage, and the keys")
	f.StringVar(&o.kit, "kit", "", "`kit` of the lost group, instead of --config")
	f.StringVar(&o.phrase, "passphrase-file", "", "with --kit: file whose first line is the passphrase (default: it is asked for)")
	f.StringVar(&o.Signers, "signers", "", "list of keys whose signatures are believed (default that of the kit, or signers.json in the home of --config)")
	f.BoolVar(&o.AcceptForeign, "accept-foreign", false, "believe a state whatever key it is signed with")
	f.StringVar(&o.Object, "object", "", "`name` of a state that is not the newest")
	f.BoolVar(&o.over, "over", false, "replace what the group has otherwise")
	f.BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return r.restoreGroup(cmd.Context(), o) }
	return cmd
}

func (r *root) restoreGroup(ctx context.Context, o groupRestore) (err error) {
	switch {
	case o.Storage == "":
		return &api.Error{Code: api.CodeUsage, Message: "from which storage?", Hint: "name one of the lost group by --from STORAGE"}
	case (o.Config == "") == (o.kit == ""):
		return &api.Error{Code: api.CodeUsage, Message: "where is storage " + o.Storage + "?", Hint: "name a configuration that says so by --config FILE, or a kit by --kit KIT"}
	}
	if o.kit != "" {
		remove, err := r.openKitFor(&o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
	}
	c := r.client()
	defer c.Close()
	o.Object = offline.GroupStateName(o.Object)
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	o.Cluster = s.Cluster
	read, err := offline.ReadGroupState(ctx, o.GroupStateOptions)
	if err != nil {
		return err
	}
	want := api.RestoreGroup{From: o.Storage, Object: read.Object, Cluster: read.Cluster, Over: o.over, Secrets: read.Packed}
	plan, err := c.PlanRestoreGroup(ctx, want)
	if err != nil {
		return err
	}
	out := groupRestoreOutput{State: read, RestoredGroup: plan, Taken: []offline.TakenStorage{}}
	if len(plan.Against) == 0 || o.over {
		if err := r.sureToTakeOver(o, read, plan); err != nil {
			return err
		}
		if out.Taken, err = offline.TakeOverStorages(ctx, o.StorageOptions, read.Cluster, plan.Cluster); err != nil {
			return err
		}
	}
	if out.RestoredGroup, err = c.RestoreGroup(ctx, want); err != nil {
		return err
	}
	if err := r.print(out); err != nil {
		return err
	}
	if !out.Done {
		return &api.Error{Code: api.CodeFailed, Message: "not all could be done yet", Hint: "see to what is left, and say the same again"}
	}
	return nil
}

// openKitFor has o read by an unpacked kit, which remove takes away again.
func (r *root) openKitFor(o *groupRestore) (remove func() error, err error) {
	text, err := r.passphrase(o.phrase, false)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kit-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	if o.Config, err = offline.UnpackKit(o.kit, text, filepath.Join(dir, "kit")); err != nil {
		return nil, errors.Join(kitError(err), os.RemoveAll(dir))
	}
	if path := filepath.Join(dir, "kit", offline.SignersName); o.Signers == "" {
		if _, err := os.Stat(path); err == nil {
			o.Signers = path
		}
	}
	return func() error { return os.RemoveAll(dir) }, nil
}

// sureToTakeOver asks a person before storages change hands.
func (r *root) sureToTakeOver(o groupRestore, read offline.GroupState, plan api.RestoredGroup) error {
	switch {
	case o.yes || read.Owner.Cluster == plan.Cluster:
		return nil
	case !r.Interactive:
		return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("the storages of group %s (%s) become those of this one, and nobody can be asked here", read.Group, read.Cluster), Hint: "add --yes"}
	}
	return r.typed(o.Storage, fmt.Sprintf("This has group %s (%s) take over the state of group %s (%s) of %s, by node %s, and its storages: that group must be no more.",
		plan.Group, plan.Cluster, read.Group, read.Cluster, read.Made.UTC().Format(time.DateTime+"Z"), read.Node))
}

// groupRestoreOutput is what was taken over.
type groupRestoreOutput struct {
	State offline.GroupState `json:"state"`
	api.RestoredGroup
	Taken []offline.TakenStorage `json:"taken"`
}

func (o groupRestoreOutput) text(w io.Writer, now time.Time) {
	var f facts
	f.add("state", fmt.Sprintf("%s, %s, by node %s of group %s", o.State.Object, ago(&o.State.Made, now), o.State.Node, o.State.Group))
	f.add("entered", fmt.Sprintf("%d, and %d were there", len(o.Entered), o.Same))
	if len(o.State.Without) > 0 {
		f.add("not in it", strings.Join(o.State.Without, ", ")+": nothing encrypted them")
	}
	f.add("backups", count(o.Backups, "backup")+" found")
	f.add("pins and notes", fmt.Sprintf("%d, of which %d wait for their backups", o.Marks, len(o.Waiting)))
	f.write(w)
	for _, s := range o.Taken {
		switch {
		case s.Taken:
			fmt.Fprintf(w, "Storage %s is this group's now.\n", s.Storage)
		case s.Problem != "":
			fmt.Fprintf(w, "Storage %s: %s\n", s.Storage, printable(s.Problem))
		}
	}
	for _, text := range o.Left {
		fmt.Fprintf(w, "Left: %s\n", printable(text))
	}
}
