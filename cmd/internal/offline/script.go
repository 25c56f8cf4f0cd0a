package offline

import (
	"context"
	"errors"
	"io"

	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/source"
)

// RestoreScript runs a plain dump of another tool in a new database of a server, which gets the target's name when the script came
// to its end. to is a connection, as ServerRestore.To. One into the same target that was killed is cleaned up after; one that
// still runs is ended. It blocks until script is read.
func RestoreScript(ctx context.Context, to, target string, script io.Reader) error {
	src, err := handedServer(to)
	if err != nil {
		return err
	}
	_, err = pipeline.RestoreScript(ctx, src, shelfAttempt("script "+target), target, script)
	var own interface{ Hint() string }
	switch {
	case errors.Is(err, source.ErrTargetExists):
		return &adviceError{err, "name another one by --as: a script replaces nothing"}
	case err != nil && ctx.Err() == nil && (!errors.As(err, &own) || own.Hint() == ""):
		return &adviceError{err, "nothing was made; the script has to be whole, as pg_dump wrote it"}
	}
	return err
}
