package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
)

// more is added to what init writes: what only the demo wants.
const more = `backup:
  rate_limit: %s
log:
  format: json
`

// startNodes makes the storages, writes the configurations and starts one process for each.
func (d *demo) startNodes(ctx context.Context, dsn string) error {
	o := offline.InitOptions{
		Nodes: []string{"n1", "n2", "n3"}, Dir: d.dir, Group: "demo", Databases: []string{database + "=" + dsn},
	}
	for _, name := range []string{"near", "far"} {
		s := store{name, filepath.Join(d.dir, "storages", name)}
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return fmt.Errorf("make storage %s: %w", name, err)
		}
		d.storages = append(d.storages, s)
		o.Storages = append(o.Storages, name+"="+s.dir)
	}
	var err error
	if o.BasePort, err = freePorts(os.Getpid(), len(o.Nodes)); err != nil {
		return err
	}
	files, err := offline.Init(o)
	if err != nil {
		return fmt.Errorf("write the nodes' configurations: %w", err)
	}
	var mu sync.Mutex
	for _, f := range files {
		if err := appendTo(f.Config, fmt.Sprintf(more, d.size.rate)); err != nil {
			return err
		}
		n := &node{name: f.Node, config: f.Config, socket: f.Socket, client: api.NewClient(f.Socket), daemon: d.daemon}
		if d.verbose {
			n.show = &prefixed{name: f.Node, mu: &mu, w: d.out.w}
		}
		d.nodes = append(d.nodes, n)
		if err := n.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("add to a configuration: %w", err)
	}
	return nil
}

// Ports are taken below those that systems give out by themselves (32768 and up, mostly): the killed node must find its
// own free when it comes back.
const (
	firstPort = 15000
	portSlots = 512
	slotWidth = 32 // at least what offline.Init needs for three nodes
)

// freePorts finds a base port for n nodes. Demos that run side by side begin to search at different places.
func freePorts(seed, n int) (base int, err error) {
	for i := range portSlots {
		base = firstPort + (seed+i)%portSlots*slotWidth
		if err = allFree(base, n); err == nil {
			return base, nil
		}
	}
	return 0, fmt.Errorf("find free ports for the nodes: %w", err)
}

// allFree tries the ports that offline.Init gives to n nodes.
func allFree(base, n int) error {
	for i := range n {
		for _, port := range []int{base + 10*i, base + 10*i + 1, base + 10*i + 2} {
			address := fmt.Sprintf("127.0.0.1:%d", port)
			l, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			p, err := net.ListenPacket("udp", address)
			if err = errors.Join(err, l.Close()); err != nil {
				return err
			}
			if err := p.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// readyTick is how often a node is asked whether it is ready.
const readyTick = 50 * time.Millisecond

// awaitReady waits until all nodes are ready and agree on a leader, and returns that.
func (d *demo) awaitReady(ctx context.Context) (leader string, err error) {
	tick := time.NewTicker(readyTick)
	defer tick.Stop()
	for {
		if leader, err = d.agreed(ctx); leader != "" || err != nil {
			return leader, err
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the nodes: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// agreed is the leader that all nodes name, "" while they do not or one is not ready; a node that ended is an error.
func (d *demo) agreed(ctx context.Context) (leader string, err error) {
	all := true
	for i, n := range d.nodes {
		select {
		case <-n.done:
			return "", fmt.Errorf("node %s has ended: %s", n.name, n.lastWords())
		default:
		}
		s, err := n.client.Status(ctx)
		if cause := context.Cause(ctx); cause != nil {
			return "", cause
		}
		if err != nil || !s.Ready || i > 0 && s.Leader != leader {
			all = false
		}
		leader = s.Leader
	}
	if !all {
		return "", nil
	}
	return leader, nil
}

func (d *demo) node(name string) *node {
	return d.nodes[slices.IndexFunc(d.nodes, func(n *node) bool { return n.name == name })]
}

func names(nodes []*node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.name)
	}
	return strings.Join(out, " ")
}
