package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
)

// certsOutput are certificates that were made or looked at.
type certsOutput []offline.CertFile

func (r *root) certsCommand() *cobra.Command {
	return group("certs", "Make, renew and look at the certificates of a group",
		r.certsInitCommand(), r.certsIssueCommand(), r.certsRenewCommand(), r.certsRotateCommand(), r.certsShowCommand())
}

// certsDir is the directory that has ca.pem and ca.key.
func certsDir(cmd *cobra.Command) *string {
	return cmd.Flags().String("dir", ".", "directory of the authority's ca.pem and ca.key")
}

func (r *root) certsInitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init --dir DIR",
		Short: "Make an authority for a group that has none",
		Long: "Make an authority (ca.pem and ca.key) for a group that has none; `fencepost init` makes one by itself. It overwrites\n" +
			"nothing. Every node needs ca.pem; ca.key signs certificates: keep it off the nodes.",
		Args: arguments(0, 0),
	}
	dir := certsDir(cmd)
	name := cmd.Flags().String("group", configs.Default().Group, "name of the group")
	valid := cmd.Flags().Duration("valid", offline.AuthorityValid, "how long it lasts")
	cmd.RunE = func(*cobra.Command, []string) error { return r.certsDone(offline.NewAuthority(*dir, *name, *valid)) }
	return cmd
}

func (r *root) certsIssueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue --node NODE",
		Short: "Make a certificate and a key for a node",
		Long:  "Make NODE.pem and NODE.key in the authority's directory. It overwrites nothing.",
		Args:  arguments(0, 0),
	}
	dir := certsDir(cmd)
	name := cmd.Flags().String("group", configs.Default().Group, "name of the group")
	node := cmd.Flags().String("node", "", "name of the node")
	valid := cmd.Flags().Duration("valid", offline.NodeValid, "how long it lasts")
	hosts := cmd.Flags().StringSlice("host", nil, "name or address by which browsers call the node, beside its name; may be repeated")
	cmd.RunE = func(*cobra.Command, []string) error {
		return r.certsDone(offline.IssueCert(*dir, *name, *node, *valid, *hosts...))
	}
	return cmd
}

func (r *root) certsRenewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "renew --node NODE",
		Short: "Replace a node's certificate before it expires, or after",
		Long: "Replace NODE.pem in the authority's directory by one with the same name and key and a new time. Put it in the place of\n" +
			"the node's: a running node takes it up by itself.",
		Args: arguments(0, 0),
	}
	dir := certsDir(cmd)
	node := cmd.Flags().String("node", "", "name of the node")
	valid := cmd.Flags().Duration("valid", offline.NodeValid, "how long the new one lasts")
	cmd.RunE = func(*cobra.Command, []string) error { return r.certsDone(offline.RenewCert(*dir, *node, *valid)) }
	return cmd
}

func (r *root) certsShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show FILE|DIR",
		Short: "Tell whose a certificate is, and how long it lasts",
		Args:  arguments(1, 1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error { return r.certsDone(offline.ShowCerts(args[0], r.Now())) }
	return cmd
}

// certsDone prints what was made, or says why nothing was.
func (r *root) certsDone(list []offline.CertFile, err error) error {
	if err != nil {
		return certsProblem(err)
	}
	return r.print(certsOutput(list))
}

func certsProblem(err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return &api.Error{Code: api.CodeConflict, Message: err.Error(), Hint: "it overwrites nothing: choose another directory, or renew"}
	case errors.Is(err, fs.ErrNotExist):
		return &api.Error{Code: api.CodeNotFound, Message: err.Error(), Hint: "--dir is where ca.pem and ca.key are"}
	case errors.Is(err, offline.ErrExpired):
		return &api.Error{Code: api.CodeUsage, Message: err.Error(), Hint: "fencepost certs rotate-ca makes a new authority"}
	}
	return &api.Error{Code: api.CodeUsage, Message: err.Error()}
}

func (list certsOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"FILE", "WHOSE", "UNTIL", "DAYS LEFT"}, none: "no certificates"}
	for _, c := range list {
		left := fmt.Sprint(c.DaysLeft)
		if c.DaysLeft < 0 {
			left = "expired"
		}
		t.rows = append(t.rows, []string{c.File, c.Name, c.Until.UTC().Format(time.DateOnly), left})
	}
	t.write(w)
}
