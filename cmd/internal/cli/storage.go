package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// storageAuthOutput says where the token is.
type storageAuthOutput struct {
	Storage string `json:"storage"`
	File    string `json:"file"`
}

func (r *root) storageCommand() *cobra.Command {
	return group("storage", "Places where backups are kept", r.storageListCommand(), r.storageRestoreCommand(), r.storageGlobalsCommand(), r.storageCheckCommand(), r.storageAuthCommand(),
		r.storageAddCommand(), r.storageTestCommand(), r.storageAdoptCommand(), r.storageSetCommand())
}

func (r *root) storageAuthCommand() *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use:   "auth NAME --config FILE",
		Short: "Authorize the app of a Dropbox storage",
		Long: "Authorize the app of a storage of kind dropbox: open the printed page in any browser, allow the app, and type the\n" +
			"code that it shows. The token that it is turned into goes to the file which the storage's refresh_token names,\n" +
			"readable by its owner alone; put it there on each node. It stays good until it is revoked. It needs no daemon.",
		Args: arguments(1, 1),
	}
	cmd.Flags().StringVar(&config, "config", "", "configuration file of the node")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if config == "" {
			return &api.Error{Code: api.CodeUsage, Message: "which node?", Hint: "name its configuration by --config FILE"}
		}
		a, err := offline.Authorize(config, args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(r.Stderr, "Open this page, allow the app, and type the code that it shows:\n\n  %s\n\nCode: ", a.URL)
		code, err := bufio.NewReader(r.Stdin).ReadString('\n')
		if strings.TrimSpace(code) == "" {
			return &api.Error{Code: api.CodeFailed, Message: "no code was typed: nothing was done"}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := a.Finish(cmd.Context(), code); err != nil {
			return err
		}
		return r.print(storageAuthOutput{Storage: args[0], File: a.File})
	}
	return cmd
}

func (o storageAuthOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "\nThe token of %s is in %s.\n", o.Storage, o.File)
}

// findingsOutput are what a check found.
type findingsOutput []api.Finding

func (r *root) storageCheckCommand() *cobra.Command {
	var want api.CheckStorage
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Compare what lies in a storage with its manifests and with the ledger",
		Long: "List a storage and compare it with its manifests and with what the group knows of its backups: attempts that were\n" +
			"never committed (partial), whole backups that the ledger does not know (unknown, see catalog rebuild), objects that\n" +
			"are missing or have a wrong size, tombstones, manifests that cannot be read (broken) or that another group has made\n" +
			"(foreign), and objects of others (stray). It reads no contents: for that, see verify. With --fix it removes what no\n" +
			"manifest and no entry counts and nobody is at work on; all else is left to people. It fails when something is wrong.",
		Args: arguments(1, 1),
	}
	cmd.Flags().BoolVar(&want.Fix, "fix", false, "remove what nothing counts")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := r.client()
		defer c.Close()
		found, err := c.CheckStorage(cmd.Context(), args[0], want)
		if err != nil {
			return err
		}
		if err := r.print(findingsOutput(found)); err != nil {
			return err
		}
		wrong := 0
		for _, f := range found {
			if !f.Fixed && f.Kind != "tombstone" && f.Kind != "kept" {
				wrong++
			}
		}
		switch wrong {
		case 0:
			return nil
		case 1:
			return &api.Error{Code: api.CodeFailed, Message: fmt.Sprintf("storage %s: one thing is not as it should be", args[0])}
		}
		return &api.Error{Code: api.CodeFailed, Message: fmt.Sprintf("storage %s: %d things are not as they should be", args[0], wrong)}
	}
	return cmd
}

func (o findingsOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"KIND", "BACKUP", "TOKEN", "OBJECT", "FIX", "PROBLEM"}, none: "all is as it should be"}
	for _, f := range o {
		fix := ""
		switch {
		case f.Fixed:
			fix = "done"
		case f.Fixable:
			fix = "--fix"
		}
		token := ""
		if f.Token > 0 {
			token = fmt.Sprint(f.Token)
		}
		t.rows = append(t.rows, []string{f.Kind, f.Backup, token, f.Object, fix, f.Problem})
	}
	t.write(w)
}

func (r *root) catalogCommand() *cobra.Command {
	return group("catalog", "What the group knows of its backups", r.catalogRebuildCommand())
}

func (r *root) catalogRebuildCommand() *cobra.Command {
	var want api.RebuildCatalog
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Have the ledger know the whole backups of the storages that it does not know",
		Long: "Read the manifests of the storages and add the backups that are whole and that this group has made to the ledger,\n" +
			"with where their copies are. What the ledger knows already is left as it is, whatever its state.",
		Args: arguments(0, 0),
	}
	cmd.Flags().StringSliceVar(&want.Storages, "storage", nil, "only these storages (default all)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := r.client()
		defer c.Close()
		made, err := c.RebuildCatalog(cmd.Context(), want)
		if err != nil {
			return err
		}
		return r.print(rebuiltOutput(made))
	}
	return cmd
}

// rebuiltOutput are the backups that the ledger did not know.
type rebuiltOutput []api.Backup

func (b rebuiltOutput) text(w io.Writer, now time.Time) {
	if len(b) == 0 {
		fmt.Fprintln(w, "nothing to add: the ledger knows each whole backup there that this group has made")
		return
	}
	backupsOutput(b).text(w, now)
}
