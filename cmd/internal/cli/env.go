package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// envFlags say whose environment it is.
type envFlags struct{ home, config, cause string }

func (r *root) envCommand() *cobra.Command {
	o := &envFlags{}
	cmd := group("env", "Look at the local environment of a node, and repair it; needs no daemon",
		r.envStep(o, "status", "Show which generation is open, and whether it has failed", (*root).envStatus),
		r.envStep(o, "slots", "Show who is inside", (*root).envSlots),
		r.envStep(o, "verify", "Say what is not as it should be; exit code 1 when something is not", (*root).envVerify),
		r.envStep(o, "evidence", "Show why generations failed, the newest first", (*root).envEvidence),
		r.envFail(o),
		r.envStep(o, "drain", "End who is inside, and let nobody in until it is sealed", (*root).envDrain),
		r.envStep(o, "sweep", "Drain, and remove what a generation left; never the node's log", (*root).envSweep),
		r.envStep(o, "seal", "Drain, sweep and open the next generation", (*root).envSeal),
	)
	cmd.PersistentFlags().StringVar(&o.home, "home", "", "home of the node")
	cmd.PersistentFlags().StringVar(&o.config, "config", "", "configuration of the node, instead of --home (default $FENCEPOST_CONFIG)")
	return cmd
}

// envStep is a command without arguments.
func (r *root) envStep(o *envFlags, use, short string, do func(*root, *cobra.Command, offline.Env) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: arguments(0, 0), RunE: func(cmd *cobra.Command, _ []string) error {
		env, err := r.openEnv(o)
		if err != nil {
			return err
		}
		return envError(do(r, cmd, env))
	}}
}

func (r *root) envFail(o *envFlags) *cobra.Command {
	cmd := r.envStep(o, "fail --cause TEXT", "Mark the open generation failed: who is inside ends, and a warden starts anew",
		func(r *root, _ *cobra.Command, env offline.Env) error {
			if o.cause == "" {
				return &api.Error{Code: api.CodeUsage, Message: "env fail needs a cause", Hint: "--cause says to everybody inside why"}
			}
			if err := env.Fail(o.cause); err != nil {
				return err
			}
			return r.print(envDone{Done: "failed"})
		})
	cmd.Flags().StringVar(&o.cause, "cause", "", "why, in one line")
	return cmd
}

func (r *root) openEnv(o *envFlags) (offline.Env, error) {
	config := o.config
	if o.home == "" && config == "" {
		config = r.Getenv("FENCEPOST_CONFIG")
	}
	if o.home == "" && config == "" {
		return offline.Env{}, &api.Error{Code: api.CodeUsage, Message: "which node?", Hint: "name it by --home DIR or --config FILE"}
	}
	return offline.OpenEnv(o.home, config)
}

// envError gives an error its exit code.
func envError(err error) error {
	switch {
	case errors.Is(err, offline.ErrEnvBusy):
		return &api.Error{Code: api.CodeBusy, Message: err.Error(), Hint: "its warden does this by itself; stop fencepostd first, or use `fencepost env fail`"}
	case errors.Is(err, offline.ErrEnvNotProven):
		return &api.Error{Code: api.CodeNotStopped, Message: err.Error()}
	case errors.Is(err, offline.ErrEnvNoRoom):
		return &api.Error{Code: api.CodeFailed, Message: err.Error(), Hint: "make room on it, and say the same again"}
	case errors.Is(err, offline.ErrEnvNotSealed):
		return &api.Error{Code: api.CodeConflict, Message: err.Error()}
	}
	return err
}

// envDone is what a command that acts has done.
type envDone struct {
	Done       string `json:"done"`
	Generation uint64 `json:"generation,omitempty"`
}

func (d envDone) text(w io.Writer, _ time.Time) {
	if d.Generation > 0 {
		fmt.Fprintf(w, "%s generation %d\n", d.Done, d.Generation)
		return
	}
	fmt.Fprintln(w, d.Done)
}

func (r *root) envDrain(cmd *cobra.Command, env offline.Env) error {
	if err := env.Drain(cmd.Context()); err != nil {
		return err
	}
	return r.print(envDone{Done: "drained"})
}

func (r *root) envSweep(cmd *cobra.Command, env offline.Env) error {
	if err := env.Sweep(cmd.Context()); err != nil {
		return err
	}
	return r.print(envDone{Done: "swept"})
}

func (r *root) envSeal(cmd *cobra.Command, env offline.Env) error {
	gen, err := env.Seal(cmd.Context())
	if err != nil {
		return err
	}
	return r.print(envDone{Done: "sealed", Generation: gen})
}
