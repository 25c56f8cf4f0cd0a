package offline

import (
	"errors"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// TargetHint is what a person can do when a restore's target is there already, in the words of the command.
const TargetHint = "--replace replaces it, --as restores under another name"

// adviceError is what went wrong with a storage, with what a person can do about it.
type adviceError struct {
	error
	hint string
}

func (e *adviceError) Unwrap() error { return e.error }

// Hint is what a person can do.
func (e *adviceError) Hint() string { return e.hint }

// advise adds to an error of a storage what to look at. An error that knows it better stays as it is.
func advise(s configs.Storage, err error) error {
	var own interface{ Hint() string }
	if err == nil || errors.As(err, &own) {
		return err
	}
	hint := ""
	switch {
	case errors.Is(err, storage.ErrNoOwner) && s.Kind == "local":
		hint = "is " + s.Path + " mounted? a directory that a group has used holds _fencepost/owner.json; of a copy of one without it, --accept-foreign shows what there is"
	case errors.Is(err, storage.ErrNoOwner):
		hint = "is it the right place (prefix, folder)? one that a group has used holds _fencepost/owner.json; of a copy of one without it, --accept-foreign shows what there is"
	case errors.Is(err, storage.ErrForeign):
		hint = "choose another place; if the other group is no more, see fencepost storage adopt"
	case s.Kind == "local":
		hint = "the directory " + s.Path + " must be there, be mounted, and belong to the user that runs the daemon; fencepost makes none"
	case s.Kind == "s3" && errors.Is(err, storage.ErrPermanent):
		hint = "look at endpoint, region, bucket, access_key and secret_key of storage " + s.Name + " in the configuration; the bucket must exist"
	case s.Kind == "dropbox" && errors.Is(err, storage.ErrPermanent):
		hint = "look at app_key and refresh_token of storage " + s.Name + " in the configuration (fencepost storage auth makes a token)"
	case s.Kind == "s3", s.Kind == "dropbox":
		hint = "it does not answer as it should: look at the network, and at endpoint of storage " + s.Name + " in the configuration; then try again"
	default:
		return err
	}
	return &adviceError{err, hint}
}

// named finds a storage of a configuration.
func named(c *configs.Config, file, name string) (configs.Storage, error) {
	known := "it has none"
	for i, s := range c.Storages {
		if s.Name == name {
			return s, nil
		}
		if i == 0 {
			known = "it has: " + s.Name
		} else {
			known += ", " + s.Name
		}
	}
	return configs.Storage{}, &adviceError{errors.New(file + " has no storage named \"" + name + "\""), known}
}
