package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

func (r *root) kitCommand() *cobra.Command {
	cmd := group("kit", "Keep what is needed to restore when every machine is lost", r.kitMakeCommand(), r.kitCheckCommand(), r.kitOpenCommand())
	cmd.Long = "A kit is one file, encrypted by a passphrase: the keys that backups are decrypted with, where the storages are and how\n" +
		"they are reached, whose manifests are believed, and a page of steps. Keep it, and the passphrase, where no machine of\n" +
		"the group is. It works without a daemon; the public programs age and tar open it too."
	return cmd
}

func (r *root) kitMakeCommand() *cobra.Command {
	var o offline.KitOptions
	var from string
	cmd := &cobra.Command{
		Use:   "make FILE --config FILE",
		Short: "Write a kit for a group",
		Long: "Write a kit, from the configuration of a node that can restore (its processors have the identity_file). It overwrites\n" +
			"nothing. Make a new one when a storage, a credential or a key changes, and when a node joins. Storages and\n" +
			"databases of the group's settings are in it when the daemon of that configuration tells them, or --settings names them.",
		Args: arguments(1, 1),
	}
	cmd.Flags().StringVar(&o.Config, "config", "", "configuration file of a node that can restore")
	cmd.Flags().StringVar(&from, "settings", "", "settings of the group, as fencepost export writes them (default: the daemon is asked)")
	phrase := passphraseFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.Config == "" {
			return &api.Error{Code: api.CodeUsage, Message: "which group?", Hint: "name the configuration of one of its nodes by --config FILE"}
		}
		if o.Passphrase, err = r.passphrase(*phrase, true); err != nil {
			return err
		}
		o.Out, o.Now = args[0], r.Now()
		c := r.daemonOf(o.Config)
		defer c.Close()
		if o.Settings, err = groupSettings(cmd.Context(), c, from); err != nil && !(away(err) && from == "") {
			return err
		}
		if o.Settings != nil {
			if o.Kept, err = keptSettings(cmd.Context(), c, from); err != nil {
				return err
			}
		}
		content, err := offline.MakeKit(o)
		if err != nil {
			return err
		}
		if err := c.NoteKit(cmd.Context(), api.Kit{ID: content.ID, Places: content.Places, Signers: content.Signers}); err != nil {
			content.Warnings = append(content.Warnings, "the group was not told of the kit, and does not warn when it is out of date: "+err.Error())
		}
		return r.print(kitOutput{content, args[0]})
	}
	return cmd
}

func (r *root) kitCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check KIT",
		Short: "Try whether a kit would do today",
		Long: "Open a kit, reach its storages with it, and open the newest backup of each database with its keys; and say which\n" +
			"older ones need another kit, or are by nodes that are newer than the kit. Nothing is written to a storage. The exit code\n" +
			"is 1 when no storage of the kit would do.",
		Args: arguments(1, 1),
	}
	phrase := passphraseFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := r.passphrase(*phrase, false)
		if err != nil {
			return err
		}
		check, err := offline.CheckKit(cmd.Context(), args[0], text, "")
		if err != nil {
			return kitError(err)
		}
		if err := r.print(kitCheckOutput(check)); err != nil || check.Good {
			return err
		}
		return &api.Error{Code: api.CodeFailed, Message: "nothing can be restored with this kit today", Hint: "make a new one: fencepost kit make"}
	}
	return cmd
}

func (r *root) kitOpenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "open KIT --dir DIR",
		Short: "Unpack a kit on a machine that restores",
		Long:  "Write the files of a kit into a new directory that nobody else can read. STEPS.txt there says how to go on.",
		Args:  arguments(1, 1),
	}
	dir := cmd.Flags().String("dir", "", "directory to make")
	phrase := passphraseFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if *dir == "" {
			return &api.Error{Code: api.CodeUsage, Message: "where to?", Hint: "name a directory that is not there by --dir DIR"}
		}
		text, err := r.passphrase(*phrase, false)
		if err != nil {
			return err
		}
		config, err := offline.UnpackKit(args[0], text, *dir)
		if err != nil {
			return kitError(err)
		}
		return r.print(kitOpenOutput{Config: config, Dir: *dir})
	}
	return cmd
}

func passphraseFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("passphrase-file", "", "file whose first line is the passphrase (default: it is asked for)")
}

// passphrase reads the passphrase of a kit: from a file, or from a person, who types a new one twice. It is not shown.
func (r *root) passphrase(file string, fresh bool) (string, error) {
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("read the passphrase: %w", err)
		}
		defer f.Close()
		return firstLine(bufio.NewReader(f))
	}
	if !r.Interactive {
		return "", &api.Error{Code: api.CodeUsage, Message: "a kit has a passphrase, and nobody can be asked here", Hint: "name a file by --passphrase-file"}
	}
	typed := bufio.NewReader(r.Stdin)
	text, err := r.ask(typed, "Passphrase of the kit: ")
	if err != nil || !fresh {
		return text, err
	}
	again, err := r.ask(typed, "The same again: ")
	if err == nil && again != text {
		err = &api.Error{Code: api.CodeUsage, Message: "the two passphrases differ: nothing was done"}
	}
	return text, err
}

func (r *root) ask(typed *bufio.Reader, what string) (string, error) {
	fmt.Fprint(r.Stderr, what)
	if f, ok := r.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		text, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(r.Stderr)
		return string(text), err
	}
	return firstLine(typed)
}

func firstLine(from *bufio.Reader) (string, error) {
	text, err := from.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the passphrase: %w", err)
	}
	return strings.TrimRight(text, "\r\n"), nil
}

func kitError(err error) error {
	if errors.Is(err, offline.ErrNoKit) {
		return &api.Error{Code: api.CodeFailed, Message: err.Error(), Hint: "look for another copy of the kit, or another passphrase"}
	}
	return err
}

// kitOutput is a kit that was made.
type kitOutput struct {
	offline.KitContent
	Kit string `json:"kit"`
}

func (o kitOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "%s holds %s.\n", o.Kit, strings.Join(o.Files, ", "))
	if o.ID != "" {
		fmt.Fprintf(w, "Its id is %s: backups name the kit that they need.\n", o.ID)
	}
	for _, warning := range o.Warnings {
		fmt.Fprintf(w, "Note: %s\n", printable(warning))
	}
	fmt.Fprintf(w, "Keep it away from the group's machines, and try it now and then: fencepost kit check %s\n", o.Kit)
}

// kitCheckOutput is what a kit can do today.
type kitCheckOutput offline.KitCheck

func (o kitCheckOutput) text(w io.Writer, now time.Time) {
	t := table{heading: []string{"STORAGE", "BACKUPS", "NEWEST", "PROBLEM"}, none: "the kit names no storage"}
	for _, s := range o.Storages {
		t.rows = append(t.rows, []string{s.Storage, number(s.Backups), ago(s.Newest, now), s.Problem})
	}
	t.write(w)
	if o.ID != "" {
		fmt.Fprintf(w, "The kit's id is %s.\n", printable(o.ID))
	}
	for _, s := range o.Storages {
		for _, c := range s.Closed {
			kit := "a kit that they do not name"
			if c.Kit != "" {
				kit = "the kit " + c.Kit
			}
			fmt.Fprintf(w, "Not read by this kit: %d backups of %s in %s, up to %s; they need %s.\n", c.Backups, printable(c.Database), printable(s.Storage), printable(c.Newest), printable(kit))
		}
		for _, u := range s.Unknown {
			fmt.Fprintf(w, "Not believed by this kit: %d backups in %s, up to %s, by node %s, whose key it does not know. Has the node joined, or got a new home, since the kit was made? Then make a new kit.\n",
				u.Backups, printable(s.Storage), printable(u.Newest), printable(u.Node))
		}
	}
}

// kitOpenOutput is a kit that was unpacked.
type kitOpenOutput struct {
	Config string `json:"config"`
	Dir    string `json:"dir"`
}

func (o kitOpenOutput) text(w io.Writer, _ time.Time) {
	fmt.Fprintf(w, "The kit is in %s; go on by %s there.\n", o.Dir, "STEPS.txt")
}
