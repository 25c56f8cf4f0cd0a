package main

import (
	"os"
	"os/exec"
	"testing"
)

func TestParseStat(t *testing.T) {
	for _, x := range []struct {
		text  string
		want  process
		alive bool
		bad   bool
	}{
		{"12 (pg_dump) S 7 12 12 0", process{12, 7, "pg_dump"}, true, false},
		{"12 (a) b (c) d) R 7 12", process{12, 7, "a) b (c) d"}, true, false},
		{"12 (gone) Z 7 12", process{12, 7, "gone"}, false, false},
		{"12 no brackets", process{}, false, true},
		{"12 (cut)", process{}, false, true},
		{"x (y) S 7", process{}, false, true},
	} {
		got, alive, err := parseStat([]byte(x.text))
		if x.bad != (err != nil) || err == nil && (got != x.want || alive != x.alive) {
			t.Errorf("%q: %+v, alive %v, error %v", x.text, got, alive, err)
		}
	}
}

// TestFamily: a shell and its child are found below this process, parents first, and are gone after killHard.
func TestFamily(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "exec 3<&0; /bin/sh -c 'echo up; read x <&3; echo $x' & wait")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	found, err := family(cmd.Process.Pid)
	if err != nil || len(found) != 2 || found[0].pid != cmd.Process.Pid || found[0].parent != os.Getpid() || found[1].parent != found[0].pid {
		t.Fatalf("found %+v, error %v", found, err)
	}
	for _, p := range found {
		if err := killHard(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended by itself")
	}
	if found, err = family(cmd.Process.Pid); err != nil || len(found) != 0 {
		t.Fatalf("left %+v, error %v", found, err)
	}
}
