package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Paths of what can be read.
const (
	PathStatus     = "/api/v1/status"
	PathMembers    = "/api/v1/members"
	PathView       = "/api/v1/view"
	PathFences     = "/api/v1/fences"
	PathNodes      = "/api/v1/nodes"
	PathRebase     = "/api/v1/group/rebase"
	PathRecoveries = "/api/v1/recoveries"
	PathTasks      = "/api/v1/tasks"
	PathBackups    = "/api/v1/backups"
)

// PathPreview is the path that tells what a restore would do.
const PathPreview = "/api/v1/restores/preview"

// TasksPath is the path of a list of tasks.
func TasksPath(f TaskFilter) string { return withQuery(PathTasks, f.Query()) }

// TaskPath is the path of one task.
func TaskPath(id string) string { return PathTasks + "/" + url.PathEscape(id) }

// TaskLogPath is the path of the log of one task.
func TaskLogPath(id string) string { return TaskPath(id) + "/log" }

// BackupsPath is the path of a list of backups.
func BackupsPath(f BackupFilter) string { return withQuery(PathBackups, f.Query()) }

// BackupPath is the path of one backup.
func BackupPath(id string) string { return PathBackups + "/" + url.PathEscape(id) }

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

const (
	maxAnswer = 16 << 20
	patience  = 30 * time.Second // for an answer that is not waited for
	oneWait   = 25 * time.Second // of one long poll
)

// Client talks to a daemon, at a unix socket or over a network. It is safe for concurrent use. Every method
// blocks until the answer, at most half a minute, or until ctx ends, and returns *Error
// for whatever the daemon, or its absence, has to say.
type Client struct {
	where string // for people
	base  string
	token string
	http  *http.Client
	away  bool // over a network
}

// NewClient makes a client of the daemon at a socket; it connects at the first call. The owner calls Close.
func NewClient(socket string) *Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &Client{where: socket, base: "http://fencepost", http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}}
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks how the daemon is.
func (c *Client) Status(ctx context.Context) (Status, error) { return Get[Status](ctx, c, PathStatus) }

// Members lists the members of the present view.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	return Get[[]Member](ctx, c, PathMembers)
}

// View is the last view that the daemon has seen.
func (c *Client) View(ctx context.Context) (View, error) { return Get[View](ctx, c, PathView) }

// Fences lists the open recoveries and the maintenance fences.
func (c *Client) Fences(ctx context.Context) ([]Fence, error) {
	return Get[[]Fence](ctx, c, PathFences)
}

// Recoveries lists open and lately ended recoveries, newest first.
func (c *Client) Recoveries(ctx context.Context) ([]Recovery, error) {
	return Get[[]Recovery](ctx, c, PathRecoveries)
}

// RetryRecovery lets everybody try a parked recovery again.
func (c *Client) RetryRecovery(ctx context.Context, r RecoveryName) (Recovery, error) {
	return post[Recovery](ctx, c, PathRecoveries+"/retry", r)
}

// DropRecovery ends a recovery for good.
func (c *Client) DropRecovery(ctx context.Context, r DropRecovery) (Recovery, error) {
	return post[Recovery](ctx, c, PathRecoveries+"/drop", r)
}

// RaiseFence raises a maintenance fence on a component of a living node; it ends with the daemon's run.
func (c *Client) RaiseFence(ctx context.Context, f FenceName) (Fence, error) {
	return post[Fence](ctx, c, PathFences, f)
}

// LowerFence lowers a maintenance fence, or takes a recovery's fence from its holder; it returns what is there then.
func (c *Client) LowerFence(ctx context.Context, f LowerFence) (Fence, error) {
	return post[Fence](ctx, c, PathFences+"/lower", f)
}

// ForgetNode removes a node for good; its run must be closed and recovered.
func (c *Client) ForgetNode(ctx context.Context, n NodeName) (Node, error) {
	return post[Node](ctx, c, PathNodes+"/forget", n)
}

// Rebase has the group's numbers go on above everything that is known to have been given out.
func (c *Client) Rebase(ctx context.Context, r Rebase) (Numbers, error) {
	return post[Numbers](ctx, c, PathRebase, r)
}

// ReplaceNode lets a node come back with another home, once.
func (c *Client) ReplaceNode(ctx context.Context, n NodeName) (Node, error) {
	return post[Node](ctx, c, PathNodes+"/replace", n)
}

// Tasks lists tasks.
func (c *Client) Tasks(ctx context.Context, f TaskFilter) ([]Task, error) {
	return Get[[]Task](ctx, c, TasksPath(f))
}

// Task is one task.
func (c *Client) Task(ctx context.Context, id string) (Task, error) {
	return Get[Task](ctx, c, TaskPath(id))
}

// TaskLog is what is kept of a task's log.
func (c *Client) TaskLog(ctx context.Context, id string) (TaskLog, error) {
	return Get[TaskLog](ctx, c, TaskLogPath(id))
}

// Backups lists backups.
func (c *Client) Backups(ctx context.Context, f BackupFilter) ([]Backup, error) {
	return Get[[]Backup](ctx, c, BackupsPath(f))
}

// Backup is one backup.
func (c *Client) Backup(ctx context.Context, id string) (Backup, error) {
	return Get[Backup](ctx, c, BackupPath(id))
}

// CreateBackup plans a backup and returns its task.
func (c *Client) CreateBackup(ctx context.Context, r CreateBackup) (Task, error) {
	return post[Task](ctx, c, PathBackups, r)
}

// Restore plans a restore and returns its task.
func (c *Client) Restore(ctx context.Context, r RestoreBackup) (Task, error) {
	return post[Task](ctx, c, BackupPath(r.Backup)+"/restore", r)
}

// PreviewRestore checks a request and tells what the restore would do and meet. Nothing is planned or changed.
func (c *Client) PreviewRestore(ctx context.Context, r RestoreBackup) (RestorePlan, error) {
	return post[RestorePlan](ctx, c, PathPreview, r)
}

// Undo gives the name of a restored database back to the one that it replaced, at once, and returns the restore's task. A
// second one takes the first back.
func (c *Client) Undo(ctx context.Context, task string) (Task, error) {
	return post[Task](ctx, c, TaskPath(task)+"/undo", struct{}{})
}

// Cancel asks for the end of a task, which may take a moment, and returns the task.
func (c *Client) Cancel(ctx context.Context, id string) (Task, error) {
	return post[Task](ctx, c, TaskPath(id)+"/cancel", struct{}{})
}

// WaitTask waits until the task has ended and returns it; how it ended is in its state
// (see TaskError). Each change on the way is shown; show may be nil.
func (c *Client) WaitTask(ctx context.Context, id string, show func(Task)) (Task, error) {
	var last Task
	err := Watch(ctx, c, TaskPath(id), func(t Task) bool {
		last = t
		if show != nil {
			show(t)
		}
		return !t.Final
	})
	return last, err
}

// Get reads what is at path (PathMembers, TasksPath, ...) once.
func Get[T any](ctx context.Context, c *Client, path string) (T, error) {
	a, err := c.do(ctx, http.MethodGet, path, nil, "", 0)
	if err != nil {
		return *new(T), err
	}
	return decode[T](a.body)
}

// Watch reads what is at path, shows it, and shows it again whenever it differs, until
// show returns false (the result is nil), ctx ends or an error comes.
func Watch[T any](ctx context.Context, c *Client, path string, show func(T) (more bool)) error {
	tag, wait := "", time.Duration(0)
	for {
		a, err := c.do(ctx, http.MethodGet, path, nil, tag, wait)
		if err != nil {
			return err
		}
		wait = oneWait
		if a.unchanged {
			continue
		}
		tag = a.tag
		value, err := decode[T](a.body)
		if err != nil {
			return err
		}
		if !show(value) {
			return nil
		}
	}
}

func post[T any](ctx context.Context, c *Client, path string, request any) (T, error) {
	return postWithin[T](ctx, c, path, request, 0)
}

// postWithin is post of what takes up to within.
func postWithin[T any](ctx context.Context, c *Client, path string, request any, within time.Duration) (T, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return *new(T), fmt.Errorf("encode the request: %w", err)
	}
	a, err := c.do(ctx, http.MethodPost, path, body, "", within)
	if err != nil {
		return *new(T), err
	}
	return decode[T](a.body)
}

// call is a request without a body.
func call[T any](ctx context.Context, c *Client, method, path string) (T, error) {
	a, err := c.do(ctx, method, path, nil, "", 0)
	if err != nil {
		return *new(T), err
	}
	return decode[T](a.body)
}

func decode[T any](body []byte) (T, error) {
	var value T
	if err := json.Unmarshal(body, &value); err != nil {
		return value, fmt.Errorf("read the daemon's answer: %w", err)
	}
	return value, nil
}

// answer is a good one: a body with its tag, or "unchanged".
type answer struct {
	body      []byte
	tag       string
	unchanged bool
}

// do sends one request. With a tag it waits up to wait for an answer with another one.
func (c *Client) do(ctx context.Context, method, path string, body []byte, tag string, wait time.Duration) (answer, error) {
	limited, cancel := context.WithTimeout(ctx, wait+patience)
	defer cancel()
	request, err := c.request(limited, method, path, body, tag, wait)
	if err != nil {
		return answer{}, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, c.unreachable(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified {
		return answer{unchanged: true}, nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, c.unreachable(ctx, err)
	case len(text) > maxAnswer:
		return answer{}, &Error{Code: CodeFailed, Message: "the answer is too long", Hint: "ask for less with --limit"}
	case response.StatusCode >= 300:
		return answer{}, errorOf(response.Status, text)
	}
	return answer{body: text, tag: response.Header.Get("ETag")}, nil
}

func (c *Client) request(ctx context.Context, method, path string, body []byte, tag string, wait time.Duration) (*http.Request, error) {
	target, err := url.Parse(c.base + path)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if wait > 0 {
		q := target.Query()
		q.Set("wait", wait.String())
		target.RawQuery = q.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return request, nil
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	err = inner(err)
	e := &Error{
		Code:    CodeUnavailable,
		Message: fmt.Sprintf("no answer from a daemon at %s: %v", c.where, err),
		Hint:    "start fencepostd, or name its socket with --socket or FENCEPOST_SOCKET",
	}
	switch {
	case c.away:
		e.Hint = remoteHint(err)
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "the socket belongs to the user who runs the daemon: be that user, or root"
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = fmt.Sprintf("no answer in time from the daemon at %s", c.where)
		e.Hint = "it may be stopped or overloaded: look at its log"
	}
	return e
}

// errorOf is the error in an answer; anything that is no error of ours is reported by its
// status.
func errorOf(status string, text []byte) error {
	var e Error
	if err := json.Unmarshal(text, &e); err != nil || e.Code == "" || e.Message == "" {
		return &Error{Code: CodeFailed, Message: "the daemon answered " + status}
	}
	return &e
}
