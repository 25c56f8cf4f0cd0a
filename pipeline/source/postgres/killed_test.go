package postgres

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// playNode dumps into a writer that takes one piece, says so, and never comes back.
func playNode(dsn string) {
	s, err := New(Config{DSN: dsn})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	d, err := s.Dump(context.Background(), first)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	err = d.Write(context.Background(), source.PartData, &onceAfter{n: 1, do: func() {
		fmt.Println("writing")
		select {}
	}})
	fmt.Println("error", err)
	os.Exit(1)
}

// When a node is killed its pg_dump dies with it, and so do the sessions: nobody is left to hold the snapshot.
func TestKilledNode(t *testing.T) {
	dsn := pg.Server(t).Database(t)
	if err := pgtest.Sample(t.Context(), dsn, 4<<20); err != nil {
		t.Fatal(err)
	}
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), "FENCEPOST_TEST_DUMP="+dsn)
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "writing" {
		t.Fatalf("the node said %q: %v", line, err)
	}
	pids := childrenOf(t, node.Process.Pid)
	if len(pids) != 1 {
		t.Fatalf("the node has children %v", pids)
	}
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	for pid := range pids {
		await(t, "pg_dump to die", func() bool {
			line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") // empty for a dead one that nobody waited for
			return !strings.Contains(string(line), "pg_dump")
		})
	}
	nothingLeft(t, first)
}
