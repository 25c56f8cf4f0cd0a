package web

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

const overviewEvery = time.Second

// overviewKeeper keeps the rendered overview: its middle, which is the same for everybody who may look, and the whole page for
// each session that has asked since the middle was made.
type overviewKeeper struct {
	turn  sync.Mutex // who holds it renders; the others wait, and then use what was rendered
	made  time.Time
	text  template.HTML
	whole map[string][]byte // by the session's form token, in which its name and role cannot change
	now   uint64            // how often it was rendered, for the test
}

// overviewData is what the overview shows.
type overviewData struct {
	api.Overview
	Members    []api.Member
	Recoveries []api.Recovery // open ones, and those that ended within the last day
	Running    []api.Task
}

// Green tells whether nothing needs a person.
func (o overviewData) Green() bool { return o.Health == api.HealthWell }

// How much of each thing the overview shows, so that it stays one: what needs a person first, the rest where it is listed.
const (
	mostAlarms    = 12
	mostDatabases = 30
	mostLines     = 20
)

// FirstAlarms are those that are shown at once, OtherAlarms those behind them.
func (o overviewData) FirstAlarms() []api.Alarm { return first(o.Alarms, mostAlarms) }
func (o overviewData) OtherAlarms() []api.Alarm { return o.Alarms[len(o.FirstAlarms()):] }

// FirstDatabases are all of them, by name, or of many those that need somebody before the others.
func (o overviewData) FirstDatabases() []api.DatabaseState {
	return foremost(o.Databases, mostDatabases, func(d api.DatabaseState) bool { return tone(d.State) != "good" || d.Error != "" })
}

// FirstMembers are as FirstDatabases.
func (o overviewData) FirstMembers() []api.Member {
	return foremost(o.Members, mostLines, func(m api.Member) bool { return !m.Ready || m.Leader })
}

// FirstRecoveries are the newest.
func (o overviewData) FirstRecoveries() []api.Recovery { return first(o.Recoveries, mostLines) }

func first[A any](list []A, most int) []A { return list[:min(len(list), most)] }

// foremost are the first of a list; where there are more, those that somebody should look at are before the others.
func foremost[A any](list []A, most int, urgent func(A) bool) []A {
	if len(list) <= most {
		return list
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b A) int {
		switch x, y := urgent(a), urgent(b); {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return 0
	})
	return list[:most]
}

func (s *Site) overviewPage() View {
	return View{Path: "/{$}", Title: "Overview", Least: api.RoleViewer, menu: "Overview", live: true, sheet: "overview", whole: func(v *visit) {
		text, err := v.overview(s.overviewPage())
		if err != nil {
			v.refused(err)
			return
		}
		v.write(http.StatusOK, text)
	}}
}

// overview is the page for who asks, as it was rendered within the last second. Whoever comes here may look: what its middle
// shows does not depend on who they are.
func (v *visit) overview(page View) ([]byte, error) {
	k := &v.first
	k.turn.Lock()
	defer k.turn.Unlock()
	if now := time.Now(); k.made.IsZero() || now.Sub(k.made) >= overviewEvery {
		if err := v.look(k); err != nil {
			return nil, err
		}
	}
	if text, ok := k.whole[v.token]; ok {
		return text, nil
	}
	text, err := v.render(page, k.text)
	if err == nil && v.token != "" {
		k.whole[v.token] = text
	}
	return text, err
}

// look makes the middle anew.
func (v *visit) look(k *overviewKeeper) error {
	lasting := *v
	lasting.r = v.r.WithContext(context.WithoutCancel(v.r.Context())) // it belongs to all, not to the one who asked first
	o, err := lasting.gather()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := v.sheets["overview"].ExecuteTemplate(&b, "middle", o); err != nil {
		return err
	}
	k.made, k.text, k.whole, k.now = time.Now(), template.HTML(b.String()), map[string][]byte{}, k.now+1 // rendered by html/template
	return nil
}

func (v *visit) gather() (o overviewData, err error) {
	if o.Overview, err = ask[api.Overview](v, api.PathOverview); err != nil {
		return o, err
	}
	if o.Members, err = ask[[]api.Member](v, api.PathMembers); err != nil {
		return o, err
	}
	all, err := ask[[]api.Recovery](v, api.PathRecoveries)
	if err != nil {
		return o, err
	}
	for _, r := range all {
		if r.EndedAt == nil || v.cfg.Now().Sub(*r.EndedAt) < 24*time.Hour {
			o.Recoveries = append(o.Recoveries, r)
		}
	}
	if o.Active > 0 { // a node that shows no work has none
		o.Running, err = ask[[]api.Task](v, api.TasksPath(api.TaskFilter{Active: true, Internal: true, Limit: 20}))
	}
	return o, err
}
