package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) verifyCommand() *cobra.Command {
	var want api.VerifyBackup
	cmd := &cobra.Command{
		Use:   "verify BACKUP",
		Short: "Plan the verification of a backup",
		Long: "Plan the verification of a backup and print its task: every copy is read back, decrypted and decompressed, and\n" +
			"compared with the hashes of its manifest. With --scratch it is also restored into a server that is configured\n" +
			"for nothing else (scratch: true), looked through and dropped again. A scratch server without a dsn is made by\n" +
			"the node for each verification, and removed after it.",
		Args: arguments(1, 1),
	}
	cmd.Flags().StringSliceVar(&want.Storages, "storage", nil, "storage whose copy is read; may be repeated (default all)")
	cmd.Flags().StringVar(&want.Scratch, "scratch", "", "scratch server to restore it into; never one that backups are made of")
	wait := waitFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.taskOf(cmd.Context(), *wait, func(ctx context.Context, c *api.Client) (api.Task, error) {
			return c.VerifyBackup(ctx, args[0], want)
		})
	}
	return cmd
}
