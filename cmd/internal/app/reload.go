package app

import (
	"io"
	"log/slog"
	"reflect"

	"github.com/fencepost/fencepost/configs"
)

// reloader reads the configuration again on SIGHUP. What takes effect at once is the level of the log; of everything else
// it says that a restart is needed.
type reloader struct {
	file    string
	running configs.Config // as it was when the node was started, but for what was taken over since
	level   *slog.LevelVar
	log     *slog.Logger
}

// reload keeps the old configuration when the new one is not valid.
func (r *reloader) reload() {
	next, err := configs.Load(r.file)
	if err != nil {
		r.log.Error("app: the configuration was not read again, the old one stays", "error", err)
		return
	}
	setLevel(r.level, next.Log)
	r.running.Log.Level = next.Log.Level
	r.log.Info("app: the configuration was read again", "level", next.Log.Level)
	if !reflect.DeepEqual(r.running, *next) {
		r.log.Warn("app: more has changed in the configuration than can be changed while the node runs; restart it to apply the rest")
	}
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
