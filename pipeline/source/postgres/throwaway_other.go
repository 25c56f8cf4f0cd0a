//go:build !unix

package postgres

import (
	"context"
	"errors"
	"math"
	"os/exec"
)

var errNoServers = errors.New("throw-away servers are not made on this system: name a scratch server")

// privateServer is never made here.
type privateServer struct{ ended chan struct{} }

func startServer(context.Context, *Source, string, string) (*privateServer, error) {
	return nil, errNoServers
}

func (p *privateServer) said() string { return "" }
func (p *privateServer) dsn() string  { return "" }
func (p *privateServer) stop() error  { return nil }

func sweepServers(context.Context, string) ([]string, error) { return nil, nil }

func freeBytes(string) (int64, error) { return math.MaxInt64, nil }

// account is never needed here.
type account struct{}

func (*account) as(*exec.Cmd) {}
