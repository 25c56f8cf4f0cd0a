package recovery

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fencepost/fencepost/signals"
)

// run gives the signal to the action, waits for its end, and tells the log. ctx ends when the appointment moves or
// the manager stops; d.ctx, the action's, also when the fence is lost. Run returns after the action, whatever happens.
func (m *Manager) run(ctx context.Context, d *delivery) verdict {
	log := m.log.With("recovery", d.job.ref.Component, "node", d.job.ref.Node, "run", d.job.ref.Run,
		"index", d.job.ref.Index, "attempt", d.attempt)
	log.Info("recovery delivered")
	r := result{err: m.consume(d)}
	if d.ctx.Err() != nil {
		r.cause = context.Cause(d.ctx)
	}
	r.acquired, r.released = d.over()
	logEnd(log, r)
	s, failure := judge(r)
	switch {
	case r.released:
		return verdictDone
	case s == stepNone:
		return verdictVoid
	}
	return m.tell(ctx, log, d, s, failure)
}

func (m *Manager) consume(d *delivery) error {
	result := make(chan error, 1)
	if err := m.opts.Router.DeliverRecovery(d.ctx, d, func(err error) { result <- err }); err != nil {
		return err
	}
	return <-result
}

func logEnd(log *slog.Logger, r result) {
	attrs := []any{"acquired", r.acquired, "released", r.released}
	if r.cause != nil {
		attrs = append(attrs, "interrupted", r.cause)
	}
	if p, ok := errors.AsType[*signals.PanicError](r.err); ok {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	switch {
	case r.err != nil:
		log.Warn("recovery action failed", append(attrs, "error", r.err)...)
	case !r.acquired:
		log.Warn("recovery action returned nil without having acquired the fence", attrs...)
	default:
		log.Info("recovery action returned", attrs...)
	}
}

// tell carries out a step until the log has answered.
func (m *Manager) tell(ctx context.Context, log *slog.Logger, d *delivery, s step, failure Failure) verdict {
	ctx, cancel := m.reportContext(ctx)
	defer cancel()
	for wait := m.opts.MinBackoff; ; wait = min(2*wait, m.opts.MaxBackoff) {
		answer := m.step(ctx, d, s, failure)
		v, again, also := next(s, answer)
		switch {
		case also != nil:
			log.Warn("fence could not be lowered", "error", answer)
			s, failure = stepFail, *also
			continue
		case !again:
			log.Info("recovery settled", "verdict", v, "error", answer)
			return v
		case !pause(ctx, wait):
			log.Warn("result of recovery is not reported", "error", answer)
			return verdictVoid
		}
	}
}

func (m *Manager) step(ctx context.Context, d *delivery, s step, failure Failure) error {
	if s == stepFail {
		return m.opts.Log.FailRecovery(ctx, d.job.ref, failure)
	}
	<-d.gate
	defer d.leave()
	return d.lower(ctx)
}

// reportContext is ctx, but outlasts a stop by the grace, so that work done is also recorded as done.
func (m *Manager) reportContext(ctx context.Context) (context.Context, func()) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), signals.ErrNotAppointed) {
			pause(out, m.opts.StopGrace)
		}
		cancel(context.Cause(ctx))
	})
	return out, func() { unhook(); cancel(nil) }
}
