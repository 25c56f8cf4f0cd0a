package offline

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox"
)

// Authorization is the authorizing of one storage, which waits for the code that a person gets at URL.
type Authorization struct {
	URL  string // for a browser
	File string // the token will be written to

	begun *dropbox.Authorization
}

// Authorize begins for a storage of a configuration file. Nothing is written, and nobody is asked yet. Its errors name the
// field and the remedy.
func Authorize(config, storage string) (*Authorization, error) {
	c, err := configs.Load(config)
	if err != nil {
		return nil, err
	}
	for i, s := range c.Storages {
		if s.Name != storage {
			continue
		}
		file, ok := s.RefreshToken.File()
		switch {
		case s.Kind != "dropbox":
			return nil, fmt.Errorf("storages[%d] %s is of kind %s, which needs no authorizing", i, s.Name, s.Kind)
		case !ok:
			return nil, fmt.Errorf("storages[%d].refresh_token is %s: write file:PATH, so that there is a place for the token", i, s.RefreshToken)
		}
		begun, err := dropbox.Authorize(s.AppKey, s.Endpoint)
		if err != nil {
			return nil, err
		}
		return &Authorization{URL: begun.URL, File: file, begun: begun}, nil
	}
	return nil, fmt.Errorf("%s has no storage named %q", config, storage)
}

// Finish turns the code into a token and writes it. It talks to the service, bounded by ctx.
func (a *Authorization) Finish(ctx context.Context, code string) error {
	token, err := a.begun.Finish(ctx, code)
	if err != nil {
		return err
	}
	if err := replaceFile(a.File, token.Reveal()+"\n"); err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	return nil
}

// replaceFile writes a file that may be there, all or nothing, for its owner alone.
func replaceFile(path, text string) error {
	next, err := writeBeside(path, text)
	if err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return nil
}
