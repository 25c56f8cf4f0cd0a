package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Bindings tell what users may do beside what their role lets them. Methods must not block.
type Bindings interface {
	// Bound are the bindings of a user.
	Bound(user string) []Bound
	// LabelsOf are the labels of a database or scratch server; none for one that nobody knows.
	LabelsOf(database string) []string
}

// Bound makes a user an operator of the databases that carry one of the labels.
type Bound struct {
	Labels         []string
	Source, Target bool // what is done with them
}

// touched is what a request is about, for those who may not touch everything.
type touched struct {
	sources []string // databases whose backups are made, kept or read
	targets []string // databases into whose servers something is restored
}

// about finds out what a request is about; body is its whole body. An error refuses the request.
type about func(ctx context.Context, r *http.Request, body []byte) (touched, error)

// touching is r when it is about databases: who is bound to all of them may use it, whatever their role.
func (r Route) touching(a about) Route {
	r.about = a
	return r
}

// bound tells why somebody whose role is too low may not use a route all the same.
func (h *handler) bound(w http.ResponseWriter, r *http.Request, route Route, refused error) error {
	actor, known := accounts.Of(r.Context())
	if !known || route.about == nil || route.Role != api.RoleOperator || h.Bindings == nil || actor.Via == accounts.ViaSocket || actor.Most != "" && !actor.Most.May(route.Role) {
		return refused
	}
	bindings := h.Bindings.Bound(actor.Name)
	if len(bindings) == 0 {
		return refused
	}
	if err := Allow(r, api.RoleViewer, route.Method != http.MethodGet); err != nil {
		return err
	}
	body, err := wholeBody(w, r)
	if err != nil {
		return err
	}
	t, err := route.about(r.Context(), r, body)
	if err != nil {
		return err
	}
	if len(t.sources)+len(t.targets) == 0 {
		return refused
	}
	return h.coversAll(bindings, actor.Name, t)
}

// coversAll says which of what is touched somebody is not bound to.
func (h *handler) coversAll(bindings []Bound, user string, t touched) error {
	for _, name := range t.sources {
		if !h.covered(bindings, name, func(b Bound) bool { return b.Source }) {
			return notBound(user, name, "source")
		}
	}
	for _, name := range t.targets {
		if !h.covered(bindings, name, func(b Bound) bool { return b.Target }) {
			return notBound(user, name, "target")
		}
	}
	return nil
}

// Operates tells whether who sends r is an operator of these databases, by role or because they are bound to their labels:
// what somebody cannot do need not be offered to them. Whether it is done is decided when they ask for it.
func (a *API) Operates(r *http.Request, sources, targets []string) bool {
	actor, known := accounts.Of(r.Context())
	switch {
	case !known:
		return false
	case actor.Role.May(api.RoleOperator):
		return true
	case a.h.Bindings == nil || actor.Most != "" && !actor.Most.May(api.RoleOperator) || len(sources)+len(targets) == 0:
		return false
	}
	return a.h.coversAll(a.h.Bindings.Bound(actor.Name), actor.Name, touched{sources, targets}) == nil
}

// boundTo tells whether a user is bound to anything.
func (h *handler) boundTo(user string) bool {
	return h.Bindings != nil && len(h.Bindings.Bound(user)) > 0
}

func notBound(user, database, as string) error {
	return &api.Error{Code: api.CodeForbidden, Message: user + " is no operator of database " + database + " as a " + as, Hint: "an admin can bind them to its labels: bindings in the group's settings"}
}

func (h *handler) covered(bindings []Bound, database string, as func(Bound) bool) bool {
	labels := h.Bindings.LabelsOf(database)
	return slices.ContainsFunc(bindings, func(b Bound) bool {
		return as(b) && slices.ContainsFunc(b.Labels, func(l string) bool { return slices.Contains(labels, l) })
	})
}

// bodyOf takes the body apart; what is wrong with it is for the route itself to say.
func bodyOf[Q any](body []byte) (want Q) {
	_ = json.Unmarshal(body, &want) // the zero value is about nothing, which is refused
	return want
}

// ofBackup is about the backup that the path names.
func (h *handler) ofBackup(ctx context.Context, r *http.Request, body []byte) (touched, error) {
	b, err := h.Backups.Backup(ctx, r.PathValue("id"))
	if err != nil {
		return touched{}, err
	}
	t := touched{sources: []string{b.Database}}
	if scratch := bodyOf[api.VerifyBackup](body).Scratch; scratch != "" {
		t.targets = append(t.targets, scratch)
	}
	return t, nil
}

// ofNewBackup is about the database that the body names.
func (h *handler) ofNewBackup(_ context.Context, _ *http.Request, body []byte) (touched, error) {
	want := bodyOf[api.CreateBackup](body)
	if want.RolePasswords {
		return touched{}, &api.Error{Code: api.CodeForbidden, Message: "the passwords of a server's roles are not those of some databases", Hint: "ask an operator of all"}
	}
	return touched{sources: filled(want.Database)}, nil
}

// ofRestore is about the backup's database and the one whose server receives it. Who is bound to a target may make a new
// database there; what they replace is the very database that was backed up, and nothing that the group has not made.
func (h *handler) ofRestore(ctx context.Context, r *http.Request, body []byte) (touched, error) {
	want := bodyOf[api.RestoreBackup](body)
	if id := r.PathValue("id"); id != "" {
		want.Backup = id
	}
	source := want.Database
	if want.Backup != "" {
		b, err := h.Backups.Backup(ctx, want.Backup)
		if err != nil {
			return touched{}, err
		}
		source = b.Database
	}
	target := want.Database
	if target == "" {
		target = source
	}
	elsewhere := target != source || want.Target != ""
	if want.AcceptForeign || elsewhere && (want.Replace || want.InPlace) {
		return touched{}, &api.Error{Code: api.CodeForbidden, Message: "who is operator of some databases replaces only the very database that was backed up, by a backup that this group has made",
			Hint: "restore it under a new name, or ask an operator of all"}
	}
	return touched{sources: filled(source), targets: filled(target)}, nil
}

// ofTask is about what the task is about: one that restores is about its target.
func (h *handler) ofTask(ctx context.Context, r *http.Request, _ []byte) (touched, error) {
	t, err := h.Tasks.Task(ctx, r.PathValue("id"))
	if err != nil {
		return touched{}, err
	}
	if t.Type == "restore" {
		return touched{targets: filled(t.Database)}, nil
	}
	return touched{sources: filled(t.Database)}, nil
}

// ofSchedule is about the schedule's database.
func (h *handler) ofSchedule(ctx context.Context, r *http.Request, _ []byte) (touched, error) {
	all, err := h.Recurring.Schedules(ctx)
	for _, s := range all {
		if s.Name == r.PathValue("name") {
			return touched{sources: filled(s.Database)}, err
		}
	}
	return touched{}, err
}

// ofRetained is about the database that the path names.
func (h *handler) ofRetained(_ context.Context, r *http.Request, _ []byte) (touched, error) {
	return touched{sources: filled(r.PathValue("database"))}, nil
}

// ofNamed is about the database that the path names.
func (h *handler) ofNamed(_ context.Context, r *http.Request, _ []byte) (touched, error) {
	return touched{sources: filled(r.PathValue("name"))}, nil
}

func filled(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}
