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
	return group("storage", "Places where backups are kept", r.storageAuthCommand())
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
