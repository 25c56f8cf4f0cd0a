package app

import (
	"errors"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
)

// A spectator shows and plans what core members do, a witness does neither; an operator has a stopped one forgotten, for good,
// and lets another come back with an empty home.
func TestOtherRolesAndTheirEnd(t *testing.T) {
	core := config(t)
	first, _ := start(t, core)
	ready(t, first)
	join := func(node string, role configs.Role) configs.Config {
		c := config(t)
		c.Node, c.Role, c.Seeds, c.Storages, c.Databases = node, role, []string{core.Gossip.Bind}, nil, core.Databases
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	looker, third := join("n2", configs.RoleSpectator), join("n3", configs.RoleWitness)
	spectator, stopSpectator := start(t, looker)
	ready(t, spectator)
	witness, stopWitness := start(t, third)
	ready(t, witness)
	ctx, p := t.Context(), people{first}
	if _, err := (jobs{spectator}).Tasks(ctx, api.TaskFilter{}); err != nil {
		t.Errorf("a spectator lists tasks: %v", err)
	}
	wantCode(t, "a witness lists tasks", func() error { _, err := (jobs{witness}).Tasks(ctx, api.TaskFilter{}); return err }(), api.CodeUnavailable)
	v, err := p.View(ctx)
	if err != nil || len(v.Members) != 3 {
		t.Fatalf("view %+v, %v", v, err)
	}
	for _, m := range v.Members {
		if m.Node == "n2" && (m.Role != "spectator" || !m.Fed || m.Voter || len(m.Components) != 0) || m.Node == "n3" && (m.Role != "witness" || m.Fed) {
			t.Errorf("%+v", m)
		}
	}

	_, err = p.ForgetNode(ctx, api.NodeName{Node: "n2"})
	wantCode(t, "a living node is forgotten", err, api.CodeBusy)
	_, err = p.ForgetNode(ctx, api.NodeName{Node: "n9"})
	wantCode(t, "an unknown node is forgotten", err, api.CodeNotFound)
	stopSpectator()
	stopWitness()
	if n, err := p.ForgetNode(ctx, api.NodeName{Node: "n2"}); err != nil || n.State != api.NodeForgotten {
		t.Fatalf("%+v, %v", n, err)
	}
	again, _ := start(t, looker)
	if err := settled(t, again); !errors.Is(err, gms.ErrForgotten) || HintOf(err, "") == "" {
		t.Errorf("a burnt home: %v", err)
	}
	empty := third
	empty.Home = config(t).Home
	other, stopOther := start(t, empty)
	if err := settled(t, other); !errors.Is(err, gms.ErrOtherHome) {
		t.Errorf("another home: %v", err)
	}
	stopOther()
	if n, err := p.ReplaceNode(ctx, api.NodeName{Node: "n3"}); err != nil || n.State != api.NodeReplaceable {
		t.Fatalf("%+v, %v", n, err)
	}
	replaced, _ := start(t, empty)
	ready(t, replaced)
}
