package cli

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// remote is a daemon on another machine, as it was named.
type remote struct {
	server, tokenFile, caFile string
	api.Remote
}

func (r *root) remoteFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&r.remote.server, "server", "", "https://host:port of a daemon on another machine (default $FENCEPOST_SERVER, else the socket)")
	flags.StringVar(&r.remote.tokenFile, "token-file", "", "file (0600) with the token for --server (default $FENCEPOST_TOKEN_FILE)")
	flags.StringVar(&r.remote.caFile, "server-ca-file", "", "certificate of the group's authority, for --server (default $FENCEPOST_SERVER_CA_FILE, else whom the system believes)")
}

// findServer reads what is needed for a daemon on another machine, when one was named. A token comes from a file only: what
// is in a command line can be read by everybody on the machine.
func (r *root) findServer() error {
	or := func(flag, name string) string {
		if flag != "" {
			return flag
		}
		return r.Getenv(name)
	}
	switch server := or(r.remote.server, "FENCEPOST_SERVER"); {
	case server == "" || r.remote.server == "" && r.socket != "":
		return nil
	case r.socket != "":
		return &api.Error{Code: api.CodeUsage, Message: "--socket and --server name two daemons: give one"}
	default:
		r.remote.URL = server
	}
	tokenFile := or(r.remote.tokenFile, "FENCEPOST_TOKEN_FILE")
	if tokenFile == "" {
		return &api.Error{Code: api.CodeUsage, Message: "--server needs a token", Hint: "fencepost token create makes one, on a node; write it into a file (0600) and name that with --token-file"}
	}
	if problem := configs.PrivateFile(tokenFile); problem != "" {
		return &api.Error{Code: api.CodeUsage, Message: "--token-file: " + problem}
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return fmt.Errorf("read the token: %w", err)
	}
	r.remote.Token = string(bytes.TrimSpace(token))
	if caFile := or(r.remote.caFile, "FENCEPOST_SERVER_CA_FILE"); caFile != "" {
		if r.remote.Authority, err = os.ReadFile(caFile); err != nil {
			return fmt.Errorf("read the authority's certificate: %w", err)
		}
	}
	c, err := api.NewRemote(r.remote.Remote)
	if err != nil {
		return err
	}
	c.Close()
	return nil
}

// client connects to the daemon; the caller closes it.
func (r *root) client() *api.Client {
	if r.remote.URL != "" {
		if c, err := api.NewRemote(r.remote.Remote); err == nil { // findServer has seen the error
			return c
		}
	}
	socket := r.socket
	if socket == "" {
		socket = r.Getenv("FENCEPOST_SOCKET")
	}
	if socket == "" {
		socket = configs.Default().Admin.Socket
	}
	return api.NewClient(socket)
}
