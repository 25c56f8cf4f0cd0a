package web

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

const overviewEvery = time.Second

// overviewKeeper keeps the rendered middle of the overview, which is the same for everybody who may look.
type overviewKeeper struct {
	turn sync.Mutex // who holds it renders; the others wait, and then use what was rendered
	made time.Time
	text template.HTML
	now  uint64 // how often it was rendered, for the test
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

func (s *Site) overviewPage() View {
	return View{Path: "/{$}", Title: "Overview", Least: api.RoleViewer, menu: "Overview", live: true, sheet: "overview", whole: func(v *visit) {
		text, err := v.overview()
		if err != nil {
			v.refused(err)
			return
		}
		v.send(http.StatusOK, s.overviewPage(), text)
	}}
}

// overview renders the middle of the page, or gives what was rendered within the last second. Whoever comes here may look:
// what they would be shown does not depend on who they are.
func (v *visit) overview() (template.HTML, error) {
	k := &v.first
	k.turn.Lock()
	defer k.turn.Unlock()
	if now := time.Now(); !k.made.IsZero() && now.Sub(k.made) < overviewEvery {
		return k.text, nil
	}
	lasting := *v
	lasting.r = v.r.WithContext(context.WithoutCancel(v.r.Context())) // it belongs to all, not to the one who asked first
	o, err := lasting.gather()
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := v.sheets["overview"].ExecuteTemplate(&b, "middle", o); err != nil {
		return "", err
	}
	k.made, k.text, k.now = time.Now(), template.HTML(b.String()), k.now+1 // rendered by html/template
	return k.text, nil
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
