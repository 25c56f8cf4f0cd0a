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
	closing   bool   // the leader waits for the outcome of a closing of the run
	leader    string // who leads instead, if told
	err       error
}

// keep renews until the run is closed (ErrRunClosed) or ctx ends. One goroutine makes the renewals, whatever becomes of
// streams; this one keeps a stream to whoever leads.
func (s *session) keep(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var pulse sync.WaitGroup
	defer pulse.Wait()
	defer cancel()
	pulse.Go(func() { s.pulse(ctx) })
	hint := ""
	for ctx.Err() == nil {
		changed := s.to.leaderChanged()
		leader := s.to.leaderHint()
		if leader == "" {
			leader = hint
		}
		end := streamEnd{explained: true}
		if leader != "" {
			end = s.attend(ctx, leader)
		}
		hint = end.leader
		if end.runClosed || s.isOver() {
			return ErrRunClosed
		}
		if !end.explained && ctx.Err() == nil {
			s.log.Debug("gms: session stream broke", "leader", leader, "error", end.err)
			s.broke(leader)
		}
		again := min(s.ttl/60, 50*time.Millisecond)
		if end.closing {
			again = min(s.ttl/12, 250*time.Millisecond)
		}
		pause(ctx, changed, again)
	}
	return context.Cause(ctx)
}

func (s *session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// pulse makes a renewal each interval and hands it to the stream, if one is open. One that is not answered within a third
// of the interval is sent again through another member (PROTOCOL.md 5).
func (s *session) pulse(ctx context.Context) {
	var detours sync.WaitGroup
	defer detours.Wait()
	for ctx.Err() == nil {
		interval := s.interval()
		r := s.renewal()
		select {
		case <-s.out: // nobody has sent the one before
		default:
		}
		s.out <- r
		if !s.rest(ctx, interval/3) {
			continue
		}
		if !s.answered(r.GetSeq()) {
			detours.Go(func() { s.detour(ctx, r, interval) })
		}
		s.rest(ctx, interval-interval/3)
	}
}

// rest waits for d; false when a renewal is due at once, or ctx ended.
func (s *session) rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-s.hurry:
	case <-t.C:
		return true
	}
	return false
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
	opened := make(chan openedStream, 1)
	go func() { opened <- openSession(sctx, client) }()
	stream, end := s.awaitStream(ctx, leader, opened)
	if stream == nil {
		cancel()
		if end.explained {
			<-opened
		}
		return end
	}
	down := receive(sctx, stream)
	end = s.converse(ctx, leader, stream, down)
	if end.explained {
		sayGoodbye(stream, down)
	}
	cancel()
	for range down {
	}
	return end
}

type openedStream struct {
	stream sessionStream
	err    error
}

// openSession opens a stream that the other side has taken. Before it has, the library opens a stream whose connection is
// lost anew, by itself, and holds back everything else that is done with the stream meanwhile: nobody sends before.
func openSession(ctx context.Context, client wire.ClusterClient) openedStream {
	stream, err := client.Session(ctx)
	if err == nil {
		_, err = stream.Header()
	}
	return openedStream{stream, err}
}

// awaitStream waits for a stream to open, which may take long when the leader's host is silent; an end that is explained
// means that nobody has received from opened.
func (s *session) awaitStream(ctx context.Context, leader string, opened <-chan openedStream) (sessionStream, streamEnd) {
	for {
		changed := s.to.leaderChanged()
		if now := s.to.leaderHint(); now != "" && now != leader {
			return nil, streamEnd{explained: true, leader: now}
		}
		select {
		case o := <-opened:
			if o.err != nil {
				return nil, streamEnd{err: fmt.Errorf("open a session with %s: %w", leader, o.err)}
			}
			return o.stream, streamEnd{}
		case <-ctx.Done():
			return nil, streamEnd{explained: true, err: ctx.Err()}
		case <-s.over:
			return nil, streamEnd{explained: true, runClosed: true}
		case <-changed:
		}
	}
}

// sayGoodbye lets the goodbye arrive before the stream is torn down.
func sayGoodbye(stream sessionStream, down <-chan heard) {
	_ = stream.Send(&wire.SessionUp{Msg: &wire.SessionUp_Bye{Bye: &wire.Bye{}}})
	_ = stream.CloseSend() // what failed comes by receiving
	limit := time.NewTimer(200 * time.Millisecond)
	defer limit.Stop()
	for {
		select {
		case h, open := <-down:
			if !open || h.err != nil {
				return
			}
		case <-limit.C:
			return
		}
	}
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

// converse renews on the stream, at once and whenever a renewal is made. A failed Send is not looked at: what ended the
// stream comes by receiving.
func (s *session) converse(ctx context.Context, leader string, stream sessionStream, down <-chan heard) streamEnd {
	send := func(r *wire.Renewal) { _ = stream.Send(&wire.SessionUp{Msg: &wire.SessionUp_Renewal{Renewal: r}}) }
	send(s.renewal())
	for {
		changed := s.to.leaderChanged()
		if now := s.to.leaderHint(); now != "" && now != leader {
			return streamEnd{explained: true, leader: now}
		}
		select {
		case <-ctx.Done():
			return streamEnd{explained: true, err: ctx.Err()}
		case <-s.over:
			return streamEnd{explained: true, runClosed: true}
		case <-changed:
		case r := <-s.out:
			send(r)
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
		if m.Ack.GetClosing() { // the end of the stream follows
			return streamEnd{closing: true, explained: true, leader: m.Ack.GetLeader()}, true
		}
	case *wire.SessionDown_Ended:
		e := m.Ended
		return streamEnd{runClosed: e.GetRunClosed(), explained: true, leader: e.GetLeader(), err: errors.New(e.GetWhy())}, true
	}
	return streamEnd{}, false
}

// detour has another member pass the renewal to the leader that it knows: a stopped leader breaks no connection. It goes by
// whom the last one came through, and not twice in a row by one through whom none came: a member that gossip holds alive
// may be out of this one's reach, the leader itself above all, whose name is forgotten when it was not heard for a while.
func (s *session) detour(ctx context.Context, r *wire.Renewal, limit time.Duration) {
	leader := s.to.leaderHint()
	s.mu.Lock()
	node, mute := s.through, s.mute
	s.mu.Unlock()
	if node == "" || node == leader {
		node = s.to.bystander(leader, mute)
	}
	if node == "" {
		node = s.to.bystander(leader) // there is only that one
	}
	if node == "" {
		return
	}
	reply, err := s.passOn(ctx, node, r, limit)
	s.mu.Lock()
	if err == nil && reply.GetAcknowledged() {
		s.through, s.mute = node, ""
	} else {
		s.through, s.mute = "", node
	}
	s.mu.Unlock()
	if err != nil {
		s.log.Debug("gms: renewal could not be passed on", "through", node, "error", err)
		return
	}
	s.acknowledged(reply)
}

func (s *session) passOn(ctx context.Context, node string, r *wire.Renewal, limit time.Duration) (*wire.RenewReply, error) {
	client, err := s.to.client(node)
	if err != nil {
		return nil, err
	}
	request, err := s.to.sealed(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return client.Renew(ctx, request)
}
