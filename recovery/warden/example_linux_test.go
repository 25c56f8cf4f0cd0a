package warden_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fencepost/fencepost/recovery/home"
	"github.com/fencepost/fencepost/recovery/warden"
)

// printer shows what an Announcer gets.
type printer struct{}

func (printer) Announce(_ context.Context, obituary []byte) error {
	fmt.Printf("an obituary of %d bytes\n", len(obituary))
	return nil
}

// A node that is killed each time it starts: the warden tells of each death, restarts it once, and then asks for an operator.
func Example() {
	dir, err := os.MkdirTemp("", "warden")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	w, err := warden.New(warden.Config{
		Home:      home.Config{Dir: filepath.Join(dir, "env"), Seats: 4},
		Node:      "n1",
		Command:   warden.Command{Path: "/bin/sh", Args: []string{"-c", "kill -9 $$"}},
		Announcer: printer{},
		Policy:    warden.Policy{Restarts: 1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out := w.Run(context.Background())
	fmt.Println(out.Code, errors.Is(out.Err, warden.ErrNeedsOperator))
	deaths, err := home.ReadEvidence(home.Config{Dir: filepath.Join(dir, "env")})
	for _, d := range deaths {
		fmt.Printf("generation %d: %s\n", d.Generation, d.Cause)
	}
	fmt.Println(err)
	// Output:
	// an obituary of 116 bytes
	// an obituary of 116 bytes
	// an obituary of 116 bytes
	// an obituary of 116 bytes
	// 6 true
	// generation 2: the node killed by SIGKILL
	// generation 1: the node killed by SIGKILL
	// <nil>
}
