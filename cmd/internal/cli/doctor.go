package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// usualConfig is where the packaged daemon has its configuration.
const usualConfig = "/etc/fencepost/node.yaml"

// doctorOutput is all that was looked at.
type doctorOutput []offline.Exam

func (r *root) doctorCommand() *cobra.Command {
	var o offline.DoctorOptions
	var from string
	cmd := &cobra.Command{
		Use:   "doctor [--config FILE]",
		Short: "Examine this machine for a node: before the daemon is started, and while it runs",
		Long: "Examine whether a node with a configuration can work on this machine: the configuration itself, the modes of files with\n" +
			"secrets, the certificate, the home and the file system below it, the ports and addresses, the seeds, and for each database\n" +
			"its server, the client programs, the rights of the role and the server's clock; each storage is written to and read; those of the\n" +
			"group's settings, which the daemon tells or --settings names, too.\n" +
			"When the daemon runs, what it and the other nodes have to tell is examined too: among it the clocks of the nodes.\n" +
			"Each thing that is wrong is followed by how it is mended. It changes nothing that stays, and fails when something\n" +
			"failed. Run it as the user who runs the daemon.",
		Args: arguments(0, 0),
	}
	cmd.Flags().StringVar(&o.Config, "config", "", "configuration file of the node (default $FENCEPOST_CONFIG, else "+usualConfig+")")
	cmd.Flags().StringVar(&from, "settings", "", "settings of the group, as fencepost export writes them (default: the daemon is asked)")
	cmd.Flags().BoolVar(&o.Reading, "read-only", false, "put nothing into the storages, only read whose they are")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.Config = cmp.Or(o.Config, r.Getenv("FENCEPOST_CONFIG"), usualConfig)
		c := r.daemonOf(o.Config)
		defer c.Close()
		told, running := askDaemon(cmd.Context(), c)
		o.Running = running
		var err error
		switch o.Settings, err = groupSettings(cmd.Context(), c, from); {
		case away(err) && from == "":
			told = append(told, offline.Exam{What: "settings", About: "of the group", State: offline.ExamSkipped, Found: "storages and databases that only they name were not looked at: no daemon tells them", Hint: "--settings names what fencepost export has written"})
		case err != nil:
			return err
		}
		exams := append(offline.Examine(cmd.Context(), o), told...)
		if err := r.print(doctorOutput(exams)); err != nil {
			return err
		}
		failed := 0
		for _, e := range exams {
			if e.State == offline.ExamFailed {
				failed++
			}
		}
		if failed > 0 {
			return &api.Error{Code: api.CodeFailed, Message: count(failed, "examination") + " failed", Hint: "what is beside each says how it is mended"}
		}
		return nil
	}
	return cmd
}

// askDaemon has the running daemon say what it and the other nodes are alarmed about. A daemon that does not run is no failure.
func askDaemon(ctx context.Context, c *api.Client) (exams []offline.Exam, running bool) {
	o, err := c.Overview(ctx)
	if err != nil {
		return []offline.Exam{{What: "daemon", State: offline.ExamSkipped, Found: "it does not run, or not here: " + err.Error(), Hint: "systemctl status fencepostd"}}, false
	}
	exams = []offline.Exam{{What: "daemon", About: o.Node, State: offline.ExamOK, Found: "runs: " + o.State + ", lease " + o.Lease + ", version " + o.Version}}
	clocks := true
	for _, a := range o.Alarms {
		clocks = clocks && a.Kind != "clock"
		e := offline.Exam{What: a.Kind, About: a.About, State: offline.ExamWarning, Found: a.Text, Hint: a.Hint}
		if a.Severity == api.Critical {
			e.State = offline.ExamFailed
		}
		exams = append(exams, e)
	}
	if clocks {
		exams = append(exams, offline.Exam{What: "clock", About: "all nodes", State: offline.ExamOK, Found: "no node's clock is far from the group's"})
	}
	return exams, true
}

func (d doctorOutput) text(w io.Writer, _ time.Time) {
	counts := map[string]int{}
	for _, e := range d {
		counts[e.State]++
		about := e.What
		if e.About != "" {
			about += " " + e.About
		}
		lines := wrap(printable(about+": "+e.Found), max(0, widthOf(w)-9))
		fmt.Fprintf(w, "%s %s\n", paint(w, colourOf(e.State), cell(e.State, 8)), lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(w, "         %s\n", line)
		}
		if e.Hint != "" && e.State != offline.ExamOK {
			for _, line := range wrap(printable("mend: "+e.Hint), max(0, widthOf(w)-11)) {
				fmt.Fprintf(w, "           %s\n", line)
			}
		}
	}
	fmt.Fprintf(w, "\n%d ok, %s, %d failed, %d skipped\n", counts[offline.ExamOK], count(counts[offline.ExamWarning], "warning"), counts[offline.ExamFailed], counts[offline.ExamSkipped])
}
