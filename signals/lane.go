package signals

import (
	"context"
	"errors"
	"log/slog"
	"slices"
)

// backlogWarning is the number of waiting signals at which a slow factory is first named in the log; then at each
// doubling.
const backlogWarning = 1024

// lane is one factory with its queue.
type lane struct {
	factory ActionFactory
	kinds   []Kind // wanted; none: all
	queue   *queue
	log     *slog.Logger
	onError func(Signal, error)
}

// addLane makes a lane, and its worker when the router runs already. Called with mu held.
func (r *Router) addLane(f ActionFactory, limit int) (*lane, error) {
	if r.state == stateStopped {
		return nil, ErrStopped
	}
	l := &lane{factory: f, queue: newQueue(limit), log: r.log, onError: r.opts.OnError}
	if r.state == stateRunning {
		r.spawn(l.work)
	}
	return l, nil
}

func (l *lane) wants(k Kind) bool { return len(l.kinds) == 0 || slices.Contains(l.kinds, k) }

func (l *lane) push(s Signal) bool {
	waiting, ok := l.queue.push(s)
	if ok && waiting >= backlogWarning && waiting&(waiting-1) == 0 {
		l.log.Warn("action is slow, signals wait", "kind", s.Kind(), "waiting", waiting)
	}
	return ok
}

// work hands out signals until ctx ends.
func (l *lane) work(ctx context.Context) {
	for {
		s, ok := l.queue.next(ctx.Done())
		if !ok {
			break
		}
		if err := consume(ctx, l.factory, s); err != nil {
			l.report(s, err)
		}
	}
	if n := l.queue.len(); n > 0 {
		l.log.Info("signals dropped at stop", "count", n)
	}
}

func (l *lane) report(s Signal, err error) {
	attrs := []any{"kind", s.Kind(), "member", s.Facts().Member.Node, "error", err}
	if p, ok := errors.AsType[*PanicError](err); ok {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	l.log.Error("action failed", attrs...)
	if l.onError != nil {
		l.onError(s, err)
	}
}
