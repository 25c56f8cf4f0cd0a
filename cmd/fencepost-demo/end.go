package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// lookAround says how to look at what is up, and waits for the end of ctx: Ctrl-C. err is what did not hold.
func (d *demo) lookAround(ctx context.Context, err error) {
	cli := beside("fencepost")
	if err != nil {
		d.out.fail(err)
	} else {
		d.out.line("\nAll of it held. Everything stays up.")
	}
	d.out.line("\nEach node answers at its socket:\n")
	for _, n := range d.nodes {
		d.out.line("  %s   %s   process %d, log %s", n.name, n.socket, n.pid(), n.logs[len(n.logs)-1])
	}
	d.out.line("\nTo look at it, in another shell:\n")
	d.out.line("  export FENCEPOST_SOCKET=%s", d.nodes[0].socket)
	for _, command := range []string{"members", "view", "fences", "recoveries", "tasks", "backup list", "backup create " + database} {
		d.out.line("  %s %s", cli, command)
	}
	d.out.line("  psql '%s'", d.server.DSN(database))
	for _, s := range d.storages {
		d.out.line("  find %s -type f", s.dir)
	}
	d.out.line("\nTo end all of it and remove %s: Ctrl-C here, or", d.dir)
	d.out.line("  kill %d", os.Getpid())
	<-ctx.Done()
}

// stopWithin is how long the nodes may take to stop in order; they have nothing to do any more.
const stopWithin = time.Minute

// stopNodes stops the nodes in order and makes sure that they leave no half things in the storages.
func (d *demo) stopNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopWithin, fmt.Errorf("not within %v", stopWithin))
	defer cancel()
	ended := make(chan error, len(d.nodes))
	for _, n := range d.nodes {
		go func() { ended <- n.stop(ctx) }() // each is received
	}
	var errs []error
	for range d.nodes {
		errs = append(errs, <-ended)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, s := range d.storages {
		c, err := look(s)
		if err != nil {
			return err
		}
		if len(c.problems) > 0 {
			return fmt.Errorf("after the nodes stopped, storage %s: %s", s.name, strings.Join(c.problems, "; "))
		}
	}
	d.out.ok("the nodes stop in order")
	return nil
}

// nothingLeft makes sure that no process is below this one any more, and that the folder is gone.
func (d *demo) nothingLeft(ctx context.Context) error {
	if d.dir == "" {
		return nil // nothing was started
	}
	ctx, cancel := context.WithTimeout(ctx, childrenWithin)
	defer cancel()
	var left []process
	err := until(ctx, func() (bool, error) {
		all, err := family(os.Getpid())
		left = all[min(1, len(all)):]
		return len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("processes %v are left: %w", left, err)
	}
	if _, err := os.Stat(d.dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("directory %s is left", d.dir)
	}
	return nil
}
