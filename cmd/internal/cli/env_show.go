package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

type (
	envStatusOutput   offline.EnvStatus
	envSlotsOutput    offline.EnvStatus
	envEvidenceOutput []offline.EnvEvidence
	envVerifyOutput   struct {
		Problems []string `json:"problems"`
	}
)

func (r *root) envStatus(_ *cobra.Command, env offline.Env) error {
	st, err := env.Status()
	if err != nil {
		return err
	}
	return r.print(envStatusOutput(st))
}

func (st envStatusOutput) text(w io.Writer, now time.Time) {
	state := "open"
	if !st.Seal.Open {
		state = "not open"
	}
	fmt.Fprintf(w, "generation  %d, %s, since %s\n", st.Seal.Generation, state, ago(&st.Seal.At, now))
	if st.Failed != "" {
		fmt.Fprintf(w, "failed      %s\n", printable(st.Failed))
	} else if st.Usable != "" {
		fmt.Fprintf(w, "not usable  %s\n", printable(st.Usable))
	}
	if st.Seal.Cause != "" {
		fmt.Fprintf(w, "ended by    %s\n", printable(st.Seal.Cause))
	}
	if st.Seal.Attempts > 0 {
		fmt.Fprintf(w, "recoveries  %d begun and not ended\n", st.Seal.Attempts)
	}
	keeper := "nobody"
	if st.Kept {
		keeper = "a warden"
	}
	fmt.Fprintf(w, "kept by     %s\n", keeper)
}

func (r *root) envSlots(_ *cobra.Command, env offline.Env) error {
	st, err := env.Status()
	if err != nil {
		return err
	}
	return r.print(envSlotsOutput(st))
}

func (st envSlotsOutput) text(w io.Writer, _ time.Time) {
	if len(st.Seats) == 0 {
		fmt.Fprintln(w, "Nobody is inside.")
		return
	}
	for _, o := range st.Seats {
		words := []string{fmt.Sprintf("seat %d", o.Seat), printable(o.Record.Label)}
		if o.Record.In {
			words = append(words, fmt.Sprintf("process %d", o.Record.Ident.PID), string(o.Liveness))
		} else {
			words = append(words, "left "+printable(o.Record.Parting))
		}
		if o.Record.ReadOnly {
			words = append(words, "read-only")
		}
		if o.Held != o.Record.In {
			words = append(words, "not in order")
		}
		fmt.Fprintln(w, strings.Join(words, "  "))
	}
}

func (r *root) envVerify(_ *cobra.Command, env offline.Env) error {
	problems, err := env.Verify()
	if err != nil {
		return err
	}
	if err := r.print(envVerifyOutput{Problems: problems}); err != nil {
		return err
	}
	if n := len(problems); n > 0 {
		return &api.Error{Code: api.CodeFailed, Message: fmt.Sprintf("the environment is not in order: %d problems", n)}
	}
	return nil
}

func (v envVerifyOutput) text(w io.Writer, _ time.Time) {
	for _, p := range v.Problems {
		fmt.Fprintln(w, printable(p))
	}
	if len(v.Problems) == 0 {
		fmt.Fprintln(w, "The environment is in order.")
	}
}

func (r *root) envEvidence(_ *cobra.Command, env offline.Env) error {
	ev, err := env.Evidence()
	if err != nil {
		return err
	}
	return r.print(envEvidenceOutput(ev))
}

func (list envEvidenceOutput) text(w io.Writer, now time.Time) {
	for _, e := range list {
		fmt.Fprintf(w, "generation %d, %s: %s\n", e.Generation, ago(&e.At, now), printable(e.Cause))
		for _, note := range []string{"run", "exit", "up"} {
			if e.Notes[note] != "" {
				fmt.Fprintf(w, "  %-4s  %s\n", note, printable(e.Notes[note]))
			}
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "No generation has failed.")
	}
}
