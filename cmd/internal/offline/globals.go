package offline

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// Roles and tablespaces of a whole server, and how a backup and a server differ in them.
type (
	Global      = source.Global
	GlobalsDiff = source.GlobalsDiff
)

// GlobalsOptions say whose roles and tablespaces are compared with, or made on, which server.
type GlobalsOptions struct {
	Shelf    ShelfOptions // its Storage counts for nothing
	Storages []string     // to read from; none: all that are there
	// Of is a backup, or a server or database: then the newest backup that holds them.
	Of string
	To string // a connection to the server, as ServerRestore.To
	// Sure is asked before anything is made, with what the server lacks; its error is the answer. nil: nothing is made.
	Sure func(GlobalsDiff) error
}

// GlobalsResult is what was found, and made.
type GlobalsResult struct {
	Backup string `json:"backup"`
	To     string `json:"to"` // address of the server
	GlobalsDiff
	Made []Global `json:"made"`
}

// Globals compares the roles and tablespaces that a backup holds with those of a server, and when it is told to makes what the
// server lacks; after an error Made is what was made before it. Nothing is ever changed or dropped.
func Globals(ctx context.Context, o GlobalsOptions) (result GlobalsResult, err error) {
	result.Made = []Global{}
	src, err := handedServer(o.To)
	if err != nil {
		return result, err
	}
	shelves, err := OpenShelves(ctx, o.Shelf, o.Storages)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, shelves.Close()) }()
	if result.Backup, err = shelves.globalsOf(ctx, o.Of); err != nil {
		return result, err
	}
	text, err := shelves.globals(ctx, result.Backup)
	if err != nil {
		return result, fmt.Errorf("read the roles of backup %s: %w", result.Backup, err)
	}
	result.To = addressOf(src)
	a := shelfAttempt("globals " + o.Of)
	if result.GlobalsDiff, err = keeperOf(src).CompareGlobals(ctx, a, text); err != nil || o.Sure == nil {
		return result, err
	}
	if err := o.Sure(result.GlobalsDiff); err != nil {
		return result, err
	}
	made, err := keeperOf(src).RestoreGlobals(ctx, a, text)
	result.Made = append(result.Made, made...)
	return result, err
}

// globalsOf is the backup whose roles are meant.
func (s *Shelves) globalsOf(ctx context.Context, name string) (backup string, err error) {
	list, err := s.list(ctx)
	if err != nil {
		return "", err
	}
	for _, b := range list {
		if b.ID == name {
			return name, nil
		}
	}
	var newest ledger.Backup
	for _, b := range ofServer(list, name) {
		if hasGlobals(b) && b.AsOf.After(newest.AsOf) {
			newest = b
		}
	}
	if newest.ID == "" {
		return "", &adviceError{fmt.Errorf("the storages hold no roles of a backup, a server or a database named %q", name), "see fencepost storage list; backups that were made with globals: none have no roles"}
	}
	return newest.ID, nil
}
