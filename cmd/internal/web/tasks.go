package web

import (
	"strconv"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// pageSize is how many things a list shows at once.
const pageSize = 50

// tasksData is a page of tasks.
type tasksData struct {
	Filter api.TaskFilter
	Tasks  []api.Task
	More   string // path of the next page; empty: there is none
	Newest string // path of the first one
}

func tasks(v *visit) (any, error) {
	f, err := api.ParseTaskFilter(v.r.URL.Query())
	if err != nil {
		return nil, err
	}
	f.Limit = pageSize
	d := tasksData{Filter: f, Newest: "/tasks?" + api.TaskFilter{Active: f.Active, Internal: f.Internal, Database: f.Database}.Query().Encode()}
	if d.Tasks, err = ask[[]api.Task](v, api.TasksPath(f)); err != nil {
		return nil, err
	}
	if n := len(d.Tasks); n == pageSize {
		f.After, f.Limit = d.Tasks[n-1].ID, 0
		d.More = "/tasks?" + f.Query().Encode()
	}
	return d, nil
}

// taskData is one task.
type taskData struct {
	api.Task
	Log       api.TaskLog
	MayCancel bool
	MayUndo   bool
}

func task(v *visit) (any, error) {
	id := v.r.PathValue("id")
	t, err := ask[api.Task](v, api.TaskPath(id))
	if err != nil {
		return nil, err
	}
	log, err := ask[api.TaskLog](v, api.TaskLogPath(id))
	about := []string{t.Database}
	may := !t.Final && !t.CancelRequested && (t.Type == "restore" && v.operates(nil, about) || t.Type != "restore" && v.operates(about, nil))
	return taskData{Task: t, Log: log, MayCancel: may, MayUndo: v.may(api.RoleOperator) && t.Undo != ""}, err
}

// taskPage is the page of a task that a deed has planned.
func taskPage(t api.Task, done string) string { return "/tasks/" + segment(t.ID) + "?done=" + done }

func ofTasks() []Deed {
	one := "/tasks/{id}"
	return []Deed{
		{Path: one + "/cancel", Action: "task.cancel", again: one, do: func(v *visit) (string, error) {
			t, err := tell[api.Task](v, api.TaskPath(v.r.PathValue("id"))+"/cancel", struct{}{})
			return taskPage(t, "cancel"), err
		}},
		{Path: one + "/undo", Action: "restore.undo", again: one, do: func(v *visit) (string, error) {
			t, err := tell[api.Task](v, api.TaskPath(v.r.PathValue("id"))+"/undo", struct{}{})
			return taskPage(t, "undo"), err
		}},
	}
}

// whole is a field that holds a number; 0 when it is empty.
func (v *visit) whole(field string) (int, error) {
	text := v.form.Get(field)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, &api.Error{Code: api.CodeUsage, Message: field + ": want a number from 0"}
	}
	return int(n), nil
}
