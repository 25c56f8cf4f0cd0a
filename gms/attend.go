package gms

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// streamEnd says how a session stream ended.
type streamEnd struct {
	runClosed bool   // the leader says that the run is not open
	explained bool   // the leader said why, or it was our doing
	leader    string // who leads instead, if told
	err       error
}

// keep renews until the run is closed (ErrRunClosed) or ctx ends. It owns the stream.
func (s *session) keep(ctx context.Context) error {
	hint := ""
	for ctx.Err() == nil {
		changed := s.to.leaderChanged()
		leader := s.to.leaderHint()
		if leader == "" {
			leader = hint
		}
		if leader == "" {
			pause(ctx, changed, s.ttl/30)
			continue
		}
		end := s.attend(ctx, leader)
		hint = end.leader
		switch {
		case end.runClosed:
			return ErrRunClosed
		case !end.explained && ctx.Err() == nil:
			s.log.Debug("gms: session stream broke", "leader", leader, "error", end.err)
			s.broke(leader)
		}
		pause(ctx, changed, min(s.ttl/60, 50*time.Millisecond))
	}
	return context.Cause(ctx)
}

type sessionStream interface {
	Send(*wire.SessionUp) error
	Recv() (*wire.SessionDown, error)
	CloseSend() error
}

// heard is one message of the leader, or the end of the stream.
type heard struct {
	m   *wire.SessionDown
	err error
}

// attend keeps one stream to leader until it ends or another leads.
func (s *session) attend(ctx context.Context, leader string) streamEnd {
	client, err := s.to.client(leader)
	if err != nil {
		return streamEnd{err: err, explained: true}
	}
	sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stream, err := client.Session(sctx)
	if err != nil {
		return streamEnd{err: err}
	}
	down := receive(sctx, stream)
	var detours sync.WaitGroup
	end := s.converse(ctx, leader, stream, down, &detours)
	if end.explained {
		_ = stream.Send(&wire.SessionUp{Msg: &wire.SessionUp_Bye{Bye: &wire.Bye{}}})
		_ = stream.CloseSend()
		select { // let the goodbye arrive before the stream is torn down
		case <-down:
		case <-time.After(200 * time.Millisecond):
		}
	}
	cancel()
	for range down {
	}
	detours.Wait()
	return end
}

// receive hands on what the stream brings; the channel is closed after its end.
func receive(ctx context.Context, stream sessionStream) <-chan heard {
	ch := make(chan heard)
	go func() {
		defer close(ch)
		for {
			m, err := stream.Recv()
			select {
			case ch <- heard{m, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return ch
}

// converse renews on the stream. A failed Send is not looked at: what ended the stream comes by receiving.
func (s *session) converse(ctx context.Context, leader string, stream sessionStream, down <-chan heard, detours *sync.WaitGroup) streamEnd {
	interval := s.ttl / 3
	next, late := time.NewTimer(0), time.NewTimer(interval)
	defer next.Stop()
	defer late.Stop()
	var asked *wire.Renewal
	for {
		changed := s.to.leaderChanged()
		if now := s.to.leaderHint(); now != "" && now != leader {
			return streamEnd{explained: true, leader: now}
		}
		select {
		case <-ctx.Done():
			return streamEnd{explained: true, err: ctx.Err()}
		case <-changed:
		case <-next.C:
			asked = s.renewal()
			_ = stream.Send(&wire.SessionUp{Msg: &wire.SessionUp_Renewal{Renewal: asked}})
			next.Reset(interval)
			late.Reset(interval / 3)
		case <-late.C:
			if r := asked; r != nil && !s.answered(r.GetSeq()) {
				detours.Go(func() { s.detour(ctx, leader, r, interval/3) })
			}
		case h := <-down:
			if h.err != nil {
				return streamEnd{err: fmt.Errorf("session with %s: %w", leader, h.err)}
			}
			if end, over := s.hear(h.m); over {
				return end
			}
		}
	}
}

// hear takes one message of the leader; over when the stream is of no use any more.
func (s *session) hear(m *wire.SessionDown) (end streamEnd, over bool) {
	switch m := m.GetMsg().(type) {
	case *wire.SessionDown_Ack:
		if !s.acknowledged(m.Ack) {
			return streamEnd{runClosed: true, explained: true}, true
		}
	case *wire.SessionDown_Ended:
		e := m.Ended
		return streamEnd{runClosed: e.GetRunClosed(), explained: true, leader: e.GetLeader(), err: errors.New(e.GetWhy())}, true
	}
	return streamEnd{}, false
}

// detour has another member pass the renewal to the leader that it knows: a stopped leader breaks no connection.
func (s *session) detour(ctx context.Context, leader string, r *wire.Renewal, limit time.Duration) {
	node := s.to.bystander(leader)
	if node == "" {
		return
	}
	client, err := s.to.client(node)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := client.Renew(ctx, &wire.RenewRequest{Renewal: r})
	if err != nil {
		s.log.Debug("gms: renewal could not be passed on", "through", node, "error", err)
		return
	}
	s.acknowledged(reply)
}
