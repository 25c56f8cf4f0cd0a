package e2e

import (
	"bytes"
	"os"
	"syscall"
	"testing"
)

// TestSecondSignal: a node that waits for a dump before it stops does not wait any more when it is told a second time: it ends in
// order, and the dump is planned again, as the same attempt.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 1, watched: true, dsns: map[string]string{"shop": database(t, bulk("goods", 2))},
		extra: "backup: {rate_limit: 100KiB}\nstop: {grace: 1h}\n"})
	c.up()
	id := c.backup("n1").ID
	c.until("the dump is under way", func() bool {
		task, err := c.client("n1").Task(c.ctx, id)
		return err == nil && task.Progress.Read > 0
	})
	p := c.proc("n1")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.until("n1 says that it stops", func() bool {
		s, err := c.client("n1").Status(c.ctx)
		return err == nil && s.State == "stopping"
	})
	if task, err := c.client("n1").Task(c.ctx, id); err != nil || task.Final || task.State == "planned" {
		t.Errorf("the first signal ended it: %+v, %v", task, err)
	}
	rehearsal{c: c, words: map[string]string{"n3": "n1"}}.follow("node-stuck")
	select {
	case <-p.done:
	case <-c.ctx.Done():
		t.Fatal("n1 does not end")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("n1 ended with %d", code)
	}
	text, err := os.ReadFile(c.file("n1"))
	if err == nil {
		err = os.WriteFile(c.file("n1"), bytes.Replace(text, []byte("rate_limit: 100KiB"), []byte("rate_limit: 0"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.start("n1")
	if done := c.finishes("n1", id); done.Attempt != 1 {
		t.Errorf("attempt %d", done.Attempt)
	}
}
