package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/configs"
)

// daemonOf is a client of the daemon that runs with a configuration, unless another one was named; the caller closes it.
func (r *root) daemonOf(config string) *api.Client {
	if r.remote.URL == "" && r.socket == "" && r.Getenv("FENCEPOST_SOCKET") == "" {
		if cfg, err := configs.Load(config); err == nil {
			return api.NewClient(cfg.Admin.Socket)
		}
	}
	return r.client()
}

// keptSettings are the group's settings as people have entered them: those of the files at path, where that is named, else
// those that the daemon tells.
func keptSettings(ctx context.Context, c *api.Client, path string) (*configs.Settings, error) {
	if path != "" {
		s, err := configs.LoadSettings(path)
		return &s, err
	}
	kept, err := c.Settings(ctx)
	if err != nil {
		return nil, err
	}
	s, err := settingsOf(kept)
	return &s, err
}

// groupSettings are the group's settings with the databases that were found on its servers, for a command that looks at a
// node's file by itself: those of the files at path, where that is named, else those that the daemon tells.
func groupSettings(ctx context.Context, c *api.Client, path string) (*configs.Settings, error) {
	if path != "" {
		s, err := configs.LoadSettings(path)
		return &s, err
	}
	kept, err := keptSettings(ctx, c, "")
	if err != nil {
		return nil, err
	}
	servers, err := c.Servers(ctx)
	if err != nil {
		return nil, err
	}
	var found []configs.Found
	for _, sv := range servers {
		for _, d := range sv.Databases {
			f := configs.Found{Server: sv.Name, DBName: d.DBName, Since: d.Since}
			if d.Gone != nil {
				f.Gone = *d.Gone
			}
			found = append(found, f)
		}
	}
	s := kept.Expand(found)
	return &s, nil
}

// settingsOf are the settings in an answer.
func settingsOf(kept api.Settings) (configs.Settings, error) {
	var objects []configs.Object
	for _, s := range kept.Settings {
		objects = append(objects, configs.Object(s))
	}
	s, err := configs.FromObjects(objects)
	if err != nil {
		err = fmt.Errorf("read the settings, which may be of a later version: %w", err)
	}
	return s, err
}

// away tells whether an error says that no daemon answers.
func away(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == api.CodeUnavailable
}
