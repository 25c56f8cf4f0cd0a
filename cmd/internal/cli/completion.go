package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

func (r *root) completionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Write the completion of this command for a shell",
		Long:      "Write a script that has a shell complete the commands and flags of fencepost. The package installs all three.",
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      arguments(1, 1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.format == "json" {
			return &api.Error{Code: api.CodeUsage, Message: "a script for a shell is no JSON", Hint: "leave -o json away"}
		}
		switch args[0] {
		case "bash":
			return cmd.Root().GenBashCompletionV2(r.Stdout, true)
		case "zsh":
			return cmd.Root().GenZshCompletion(r.Stdout)
		case "fish":
			return cmd.Root().GenFishCompletion(r.Stdout, true)
		}
		return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("completion for %q is not known", args[0]), Hint: "one of bash, zsh, fish"}
	}
	return cmd
}
