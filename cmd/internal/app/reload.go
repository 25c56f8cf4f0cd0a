package app

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// reloadable are the keys and sections that take effect while the node runs; what their change does is in reloader.take.
var reloadable = []string{"log.level", "notify"}

func takesEffect(path string) bool {
	return slices.ContainsFunc(reloadable, func(key string) bool { return path == key || strings.HasPrefix(path, key+".") })
}

// reloader reads the configuration again on SIGHUP and when an operator asks. What takes effect at once are the keys in
// reloadable; of all others that have changed it says that a restart is needed. Safe for concurrent use.
type reloader struct {
	file   string
	level  *slog.LevelVar
	log    *slog.Logger
	notify func(configs.Notify) error // has the node tell people as the section says, or says why it cannot; nil: there is no node

	mu      sync.Mutex
	running configs.Config // as it was when the node was started, but for what was taken over since
}

// reload keeps the old configuration when the new one is not valid.
func (r *reloader) reload() (api.Reload, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := configs.Load(r.file)
	if err == nil {
		err = r.take(next)
	}
	if err != nil {
		r.log.Error("app: the configuration was not read again, the old one stays", "error", err)
		return api.Reload{}, err
	}
	out := api.Reload{File: r.file, Applied: []string{}, Restart: []string{}}
	for _, path := range configs.Differences(&r.running, next) {
		if takesEffect(path) {
			out.Applied = append(out.Applied, path)
			continue
		}
		out.Restart = append(out.Restart, path)
	}
	r.running.Log.Level, r.running.Notify = next.Log.Level, next.Notify
	r.log.Info("app: the configuration was read again", "applied", strings.Join(out.Applied, " "))
	if len(out.Restart) > 0 {
		r.log.Warn("app: more has changed in the configuration than can be changed while the node runs; restart it to apply the rest", "keys", strings.Join(out.Restart, " "))
	}
	return out, nil
}

// take has what is reloadable take effect: all of it, or nothing with an error.
func (r *reloader) take(next *configs.Config) error {
	if r.notify != nil {
		if err := r.notify(next.Notify); err != nil {
			return err
		}
	}
	setLevel(r.level, next.Log)
	return nil
}

// Reload implements admin.Reloader.
func (p people) Reload(context.Context) (api.Reload, error) {
	p.a.mu.Lock()
	reload := p.a.reload
	p.a.mu.Unlock()
	if reload == nil {
		return api.Reload{}, &api.Error{Code: api.CodeUnavailable, Message: "this node was not started from a file"}
	}
	out, err := reload()
	if err != nil {
		return out, &api.Error{Code: api.CodeUsage, Message: strings.ReplaceAll(err.Error(), "\n", "; "), Hint: "the old configuration stays"}
	}
	return out, nil
}

func setLevel(v *slog.LevelVar, c configs.Log) {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // validated
	v.Set(level)
}

// logger writes to a stream; its level can be changed.
func logger(c configs.Log, to io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	setLevel(level, c)
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options)), level
	}
	return slog.New(slog.NewTextHandler(to, options)), level
}
