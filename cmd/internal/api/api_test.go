package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCodes holds the table of exit codes, and that each error has a status of its kind.
func TestCodes(t *testing.T) {
	for code, want := range map[Code][2]int{
		CodeFailed:        {1, http.StatusInternalServerError},
		CodeUsage:         {2, http.StatusBadRequest},
		CodeNotFound:      {1, http.StatusNotFound},
		CodeConflict:      {1, http.StatusConflict},
		CodeBusy:          {3, http.StatusConflict},
		CodeUnavailable:   {1, http.StatusServiceUnavailable},
		CodeLeaseLost:     {4, http.StatusServiceUnavailable},
		CodeNotStopped:    {5, http.StatusConflict},
		CodeNeedsOperator: {6, http.StatusConflict},
		CodeNeedsApproval: {6, http.StatusConflict},
		CodeUnauthorized:  {1, http.StatusUnauthorized},
		CodeForbidden:     {1, http.StatusForbidden},
		CodeTooLarge:      {2, http.StatusRequestEntityTooLarge},
		CodeTooMany:       {3, http.StatusTooManyRequests},
		CodeUnsupported:   {2, http.StatusUnsupportedMediaType},
		CodeMethod:        {2, http.StatusMethodNotAllowed},
		"of a later day":  {1, http.StatusInternalServerError},
	} {
		if got := [2]int{code.Exit(), code.HTTPStatus()}; got != want {
			t.Errorf("%s: exit and status %v, want %v", code, got, want)
		}
		wrapped := fmt.Errorf("do it: %w", &Error{Code: code})
		if got := ExitCode(wrapped); got != want[0] {
			t.Errorf("%s wrapped: exit %d, want %d", code, got, want[0])
		}
	}
	if ExitCode(nil) != 0 || ExitCode(errors.New("x")) != 1 {
		t.Error("exit codes of no error and of any error")
	}
}

func TestTaskError(t *testing.T) {
	for _, x := range []struct {
		task Task
		want string
	}{
		{Task{ID: "t1", State: "uploading"}, ""},
		{Task{ID: "t1", State: "completed", Final: true}, ""},
		{Task{ID: "t1", State: "failed", Final: true, Error: "disk full", Hint: "free some"}, "task t1 failed: disk full"},
		{Task{ID: "t1", State: "cancelled", Final: true}, "task t1 was cancelled"},
		{Task{ID: "t1", State: "reverted", Final: true, Error: "n1 died"}, "task t1 was reverted: n1 died"},
	} {
		err := TaskError(x.task)
		if x.want == "" {
			if err != nil {
				t.Errorf("%s: %v", x.task.State, err)
			}
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Message != x.want || e.Hint != x.task.Hint || ExitCode(err) != ExitFailed {
			t.Errorf("%s: %#v, want %q", x.task.State, err, x.want)
		}
	}
}

// TestFiltersRoundTrip: what the client writes, the daemon reads.
func TestFiltersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := TaskFilter{rapid.Bool().Draw(t, "active"), rapid.Bool().Draw(t, "internal"), rapid.String().Draw(t, "database"), rapid.IntRange(0, 1e6).Draw(t, "limit"), rapid.String().Draw(t, "after")}
		got, err := ParseTaskFilter(queryOf(t, TasksPath(want)))
		if err != nil || got != want {
			t.Fatalf("%+v became %+v (%v)", want, got, err)
		}
		wantB := BackupFilter{want.Database, want.Limit, want.After}
		gotB, err := ParseBackupFilter(queryOf(t, BackupsPath(wantB)))
		if err != nil || gotB != wantB {
			t.Fatalf("%+v became %+v (%v)", wantB, gotB, err)
		}
	})
}

func queryOf(t *rapid.T, path string) url.Values {
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// types are all that travel.
func types() []any {
	return []any{Status{}, Member{}, View{}, Fence{}, Recovery{}, Task{}, Progress{}, Backup{}, Copy{}, Problem{}, CreateBackup{}, RestoreBackup{}}
}

// TestFieldNames: every field has a name of its own choosing in snake case, and none
// could hold a secret.
func TestFieldNames(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for _, v := range types() {
		for f := range reflect.TypeOf(v).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !snake.MatchString(name) {
				t.Errorf("%T.%s travels as %q", v, f.Name, name)
			}
			for _, word := range []string{"dsn", "password", "secret", "key", "credential"} {
				if strings.Contains(name, word) && f.Type.Kind() != reflect.Bool { // a bool holds none
					t.Errorf("%T.%s: %q sounds like a secret", v, f.Name, name)
				}
			}
			if k := f.Type.Kind(); k == reflect.Interface || k == reflect.Map && f.Name != "Stored" {
				t.Errorf("%T.%s could hold anything", v, f.Name)
			}
		}
	}
}

// TestNumbersStayWhole: the largest token survives a reader that has only floats.
func TestNumbersStayWhole(t *testing.T) {
	const largest = 1<<53 - 1
	text, err := json.Marshal(Fence{Token: largest})
	if err != nil {
		t.Fatal(err)
	}
	var loose map[string]any
	if err := json.Unmarshal(text, &loose); err != nil {
		t.Fatal(err)
	}
	if got := uint64(loose["token"].(float64)); got != largest {
		t.Fatalf("token became %d", got)
	}
}
