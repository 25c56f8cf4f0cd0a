package gms

import (
	"time"

	"github.com/fencepost/fencepost/gms/internal/state"
	"github.com/fencepost/fencepost/gms/internal/wire"
	"github.com/fencepost/fencepost/signals"
)

var roles = map[wire.Role]signals.Role{
	wire.Role_ROLE_CORE: signals.Core, wire.Role_ROLE_SPECTATOR: signals.Spectator,
	wire.Role_ROLE_WATCHDOG: signals.Watchdog, wire.Role_ROLE_WITNESS: signals.Witness,
}

func roleOf(r signals.Role) wire.Role {
	for w, s := range roles {
		if s == r {
			return w
		}
	}
	return wire.Role_ROLE_UNSPECIFIED
}

// memberOf shows a run as the host sees it.
func memberOf(r state.Run) signals.Member {
	m := signals.Member{
		Node: r.Node(), Run: r.ID.String(), Role: roles[r.Open.GetRole()], Epoch: r.Epoch, Ready: r.Ready, Details: r.Open.GetDetails(),
	}
	if r.Started > 0 {
		m.StartTime = time.UnixMilli(r.Started)
	}
	for _, c := range r.Open.GetComponents() {
		m.Components = append(m.Components, c.GetName())
	}
	return m.Clone()
}

// viewOf shows a view as the host sees it; a run that is not kept any more shows what the view itself says.
func viewOf(m *state.Machine, v state.View) signals.View {
	out := signals.View{Version: v.Version, GroupStarting: v.Starting, GroupStopping: v.Stopping}
	for _, mem := range v.Members {
		if run, ok := m.Run(mem.Run); ok {
			out.Members = append(out.Members, memberOf(run))
			continue
		}
		out.Members = append(out.Members, signals.Member{Node: mem.Node, Run: mem.Run.String(), Role: roles[mem.Role], Epoch: mem.Epoch})
	}
	return out
}
