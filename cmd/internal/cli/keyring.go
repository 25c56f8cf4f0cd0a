package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// keyringOutput is what all nodes have of gossip keys.
type keyringOutput api.Keyring

func (r *root) keyringCommand() *cobra.Command {
	cmd := group("keyring", "Change the gossip keys while the group runs",
		r.keyringListCommand(), r.keyringRekeyCommand(), r.keyringAddCommand(), r.keyringUseCommand(), r.keyringRemoveCommand())
	cmd.Long = "Change the gossip keys while the group runs: add gives every node a new key, use has it used, which is refused until\n" +
		"every configured node is proven to have it, remove takes the old one away; rekey does all three with a key that nobody\n" +
		"sees. Keys are named by fingerprints.\n\n" +
		"Keep the old key for as long as a node may be away. One that was away for longer still learns the keys from the others\n" +
		"when it is back, as long as it finds one of them where its home remembers it. Each node keeps its list in its home from\n" +
		"the first change on; put the new key into the configured file as well, for nodes that are new or made anew."
	return cmd
}

func (r *root) keyringListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the gossip keys, and who has them", Args: arguments(0, 0)}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.onKeyring(func(c *api.Client) (api.Keyring, error) { return c.Keyring(cmd.Context()) }, false)
	}
	return cmd
}

func (r *root) keyringRekeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rekey",
		Short: "Replace all gossip keys by a new one, because somebody has seen them",
		Long: "Replace all gossip keys by a new one that the daemon draws: give it to every node, have it used, take the others away.\n" +
			"It is refused while a node is down, since that one would be shut out; nothing is lost when it stops on its way: do it\n" +
			"again. Put the new key into the configured files afterwards: keyring add --file does it with a key of yours instead.",
		Args: arguments(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.onKeyring(func(c *api.Client) (api.Keyring, error) { return c.Rekey(cmd.Context()) }, true)
	}
	return cmd
}

func (r *root) keyringAddCommand() *cobra.Command {
	var generate bool
	var file string
	cmd := &cobra.Command{
		Use:   "add --generate | --file FILE | < FILE",
		Short: "Give every node a new gossip key",
		Long: "Give every node a new gossip key: one that the daemon draws, or the one in a file or at the standard input, in base64\n" +
			"as in the configured file. Add it again for nodes that were away.",
		Args: arguments(0, 0),
	}
	cmd.Flags().BoolVar(&generate, "generate", false, "the daemon draws the key, and nobody sees it")
	cmd.Flags().StringVar(&file, "file", "", "file with the key")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if generate && file != "" {
			return &api.Error{Code: api.CodeUsage, Message: "--generate and --file say two things: give one"}
		}
		want := api.AddKey{Generate: generate}
		if !generate {
			var err error
			if want.Key, err = r.readKey(file); err != nil {
				return err
			}
		}
		return r.onKeyring(func(c *api.Client) (api.Keyring, error) { return c.AddGossipKey(cmd.Context(), want) }, true)
	}
	return cmd
}

// readKey reads one key from a file, or the standard input without one.
func (r *root) readKey(file string) ([]byte, error) {
	bad := func(err error) error {
		return &api.Error{Code: api.CodeUsage, Message: "no key to add: " + err.Error(), Hint: "--generate has the daemon draw one"}
	}
	in := r.Stdin
	if file != "" {
		if problem := configs.PrivateFile(file); problem != "" {
			return nil, &api.Error{Code: api.CodeUsage, Message: problem}
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, bad(err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, 4096))
	if err != nil {
		return nil, bad(err)
	}
	keys, err := configs.ParseGossipKeys(text)
	if err == nil && len(keys) != 1 {
		err = fmt.Errorf("there are %d keys", len(keys))
	}
	if err != nil {
		return nil, bad(err)
	}
	return keys[0], nil
}

func (r *root) keyringUseCommand() *cobra.Command {
	return r.keyNamed("use FINGERPRINT", "Have every node encrypt with a key that every node has", (*api.Client).UseGossipKey)
}

func (r *root) keyringRemoveCommand() *cobra.Command {
	return r.keyNamed("remove FINGERPRINT", "Take a gossip key that is not in use away from every node", (*api.Client).RemoveGossipKey)
}

// keyNamed is a command about one key.
func (r *root) keyNamed(use, short string, ask func(*api.Client, context.Context, api.KeyName) (api.Keyring, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: arguments(1, 1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.onKeyring(func(c *api.Client) (api.Keyring, error) {
			return ask(c, cmd.Context(), api.KeyName{Fingerprint: args[0]})
		}, true)
	}
	return cmd
}

// onKeyring shows what all have afterwards. A change that somebody did not take is a failure, of which the rest stands.
func (r *root) onKeyring(ask func(*api.Client) (api.Keyring, error), change bool) error {
	c := r.client()
	defer c.Close()
	k, err := ask(c)
	if err != nil {
		return err
	}
	if err := r.print(keyringOutput(k)); err != nil {
		return err
	}
	if !change || k.Complete {
		return nil
	}
	var missed []string
	for _, m := range k.Members {
		if m.Version != k.Version || m.Problem != "" {
			missed = append(missed, m.Node)
		}
	}
	return &api.Error{Code: api.CodeFailed, Message: "not taken by " + strings.Join(missed, ", "),
		Hint: "a node that is down takes it when it is back; fencepost keyring list shows when"}
}

func (k keyringOutput) text(w io.Writer, _ time.Time) {
	t := table{heading: []string{"KEY", "STATE", "MISSING ON"}, none: "no gossip keys"}
	for _, key := range k.Keys {
		state := "decrypts"
		if key.InUse {
			state = "in use"
		}
		t.rows = append(t.rows, []string{key.Fingerprint, state, strings.Join(k.lacking(key.Fingerprint), ",")})
	}
	t.write(w)
	for _, m := range k.Members {
		switch {
		case m.Problem != "":
			fmt.Fprintf(w, "%s: %s\n", printable(m.Node), printable(m.Problem))
		case m.Version != k.Version:
			fmt.Fprintf(w, "%s: has change %d, not %d\n", printable(m.Node), m.Version, k.Version)
		}
	}
}

// lacking lists the nodes that are not known to have a key.
func (k keyringOutput) lacking(fingerprint string) (nodes []string) {
	for _, m := range k.Members {
		if !slices.ContainsFunc(m.Keys, func(x api.KeyringKey) bool { return x.Fingerprint == fingerprint }) {
			nodes = append(nodes, m.Node)
		}
	}
	return nodes
}
