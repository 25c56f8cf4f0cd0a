package web

import (
	"slices"
	"strings"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// recoveriesData is what is and was recovered.
type recoveriesData struct {
	Fences     []api.Fence
	Recoveries []api.Recovery
}

func recoveries(v *visit) (any, error) {
	f, err := ask[[]api.Fence](v, api.PathFences)
	if err != nil {
		return nil, err
	}
	r, err := ask[[]api.Recovery](v, api.PathRecoveries)
	return recoveriesData{f, r}, err
}

// recoveryData is one of them with its picture.
type recoveryData struct {
	api.Recovery
	Line     timeLine
	Orphans  []orphan
	MayRetry bool
	MayDrop  bool
	Why      string // in the form, when it is shown again
}

// orphan is a task of the dead run, and what its recoverer made of it.
type orphan struct {
	Task api.Task
	Line api.LogLine // that says so
	Was  string
	Is   string
}

func recovery(v *visit) (any, error) {
	all, err := ask[[]api.Recovery](v, api.PathRecoveries)
	if err != nil {
		return nil, err
	}
	component, run := v.r.PathValue("component"), v.r.PathValue("run")
	i := slices.IndexFunc(all, func(r api.Recovery) bool { return r.Component == component && r.Run == run })
	if i < 0 {
		return nil, &api.Error{Code: api.CodeNotFound, Message: "no such recovery is known", Hint: "those that ended long ago are not kept"}
	}
	d := recoveryData{Recovery: all[i], Why: v.form.Get("why")}
	if d.Orphans, err = v.orphans(d.Recovery, all); err != nil {
		return nil, err
	}
	d.Line = draw(d.Recovery, d.Orphans)
	d.MayRetry, d.MayDrop = d.State == api.FenceParked && v.may(api.RoleOperator), d.Ended == 0 && v.may(api.RoleAdmin)
	return d, nil
}

// mostLogs bounds how many tasks' logs are read for a picture.
const mostLogs = 30

// orphans are the tasks that the recovery has settled, as their logs say. A node that shows no work knows of none.
func (v *visit) orphans(r api.Recovery, all []api.Recovery) ([]orphan, error) {
	if r.Token == 0 || r.Since == nil {
		return nil, nil
	}
	list, err := ask[[]api.Task](v, api.TasksPath(api.TaskFilter{Internal: true, Limit: 200}))
	if err != nil {
		if problemOf(err).Code == api.CodeUnavailable {
			return nil, nil
		}
		return nil, err
	}
	var found []orphan
	read := 0
	for _, t := range list {
		if componentOf(t) != r.Component || t.Token <= r.Token || read == mostLogs {
			continue
		}
		read++
		log, err := ask[api.TaskLog](v, api.TaskLogPath(t.ID))
		if err != nil {
			return nil, err
		}
		for _, l := range log.Lines {
			if was, is, ok := settled(l); ok && settledBy(l, r, all) {
				found = append(found, orphan{t, l, was, is})
			}
		}
	}
	slices.SortFunc(found, func(a, b orphan) int { return a.Line.At.Compare(b.Line.At) })
	return found, nil
}

// componentOf is the component whose recovery settles a task.
func componentOf(t api.Task) string {
	if t.Type == "create" {
		return "backup"
	}
	return t.Type
}

// settled reads what a recoverer says of a task: task settled, was uploading, is planned: its node ended.
func settled(l api.LogLine) (was, is string, ok bool) {
	rest, ok := strings.CutPrefix(l.Text, "task settled, was ")
	if !ok {
		return "", "", false
	}
	was, rest, _ = strings.Cut(rest, ", is ")
	is, _, _ = strings.Cut(rest, ":")
	is, _, _ = strings.Cut(is, ",")
	return was, is, true
}

// settledBy tells whether a line was written under the fence of r: no other fence of that component and holder has a token
// between, because all tokens are of one counter.
func settledBy(l api.LogLine, r api.Recovery, all []api.Recovery) bool {
	if l.Node != r.Recoverer || l.Token <= r.Token {
		return false
	}
	return !slices.ContainsFunc(all, func(o api.Recovery) bool {
		return o.Component == r.Component && o.Recoverer == r.Recoverer && o.Token > r.Token && o.Token < l.Token
	})
}

func ofRecoveries() []Deed {
	one := "/recoveries/{component}/{run}"
	name := func(v *visit) api.RecoveryName {
		return api.RecoveryName{Component: v.r.PathValue("component"), Run: v.r.PathValue("run")}
	}
	back := func(v *visit, done string) string {
		return "/recoveries/" + segment(v.r.PathValue("component")) + "/" + segment(v.r.PathValue("run")) + "?done=" + done
	}
	return []Deed{
		{Path: one + "/retry", Action: "recovery.retry", again: one, do: func(v *visit) (string, error) {
			_, err := tell[api.Recovery](v, api.PathRecoveries+"/retry", name(v))
			return back(v, "retry"), err
		}},
		{Path: one + "/drop", Action: "recovery.drop", Fields: []string{"why"}, again: one, do: func(v *visit) (string, error) {
			_, err := tell[api.Recovery](v, api.PathRecoveries+"/drop", api.DropRecovery{RecoveryName: name(v), Why: v.form.Get("why")})
			return back(v, "drop"), err
		}},
	}
}
