package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is what writers notify and hubs listen to.
const channel = "fencepost_ledger"

// hub owns the session that listens, and passes hints on. One goroutine, from start to stop.
type hub struct {
	config *pgx.ConnConfig
	poll   time.Duration
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	watchers map[chan struct{}]bool
}

func newHub(config *pgx.ConnConfig, poll time.Duration, log *slog.Logger) *hub {
	return &hub{config: config, poll: poll, log: log, done: make(chan struct{}), watchers: make(map[chan struct{}]bool)}
}

func (h *hub) start() {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	go func() { // ends by stop
		defer close(h.done)
		for ctx.Err() == nil {
			err := h.listen(ctx)
			if ctx.Err() != nil {
				return
			}
			h.log.Warn("ledger: not listening for changes, trying again", "error", wrap(ctx, "listen", err))
			h.hint() // something may have been missed
			select {
			case <-time.After(min(h.poll, pauseMax)):
			case <-ctx.Done():
			}
		}
	}()
}

func (h *hub) stop() {
	h.cancel()
	<-h.done
}

// listen passes hints on until its session breaks or ctx ends. It asks nothing of the server without a bound: one that
// silently went away must not hold up the hints.
func (h *hub) listen(ctx context.Context) error {
	conn, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), minTimeout)
		defer cancel()
		_ = conn.Close(closing)
	}()
	for {
		h.hint() // the first one is for what happened before LISTEN
		waiting, cancel := context.WithTimeout(ctx, h.poll)
		_, err := conn.WaitForNotification(waiting)
		quiet := errors.Is(waiting.Err(), context.DeadlineExceeded) && !conn.IsClosed()
		cancel()
		if err == nil {
			continue
		}
		if !quiet {
			return err
		}
		h.hint()
		asking, cancel := context.WithTimeout(ctx, h.patience())
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return err
		}
	}
}

// patience bounds what is asked of the server.
func (h *hub) patience() time.Duration { return max(h.poll, minTimeout) }

// connect makes the session that listens.
func (h *hub) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, h.patience())
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, h.config)
	if err != nil {
		return nil, err
	}
	if err = begin(ctx, conn); err == nil {
		_, err = conn.Exec(ctx, "LISTEN "+channel)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// hint tells each watcher that has not been told yet.
func (h *hub) hint() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (h *hub) watch(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	h.watchers[ch] = true
	h.mu.Unlock()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, ch)
	})
	return ch
}
