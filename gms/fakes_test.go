package gms

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// bubbleClock is Go's clock, which a synctest bubble moves.
type bubbleClock struct{ start time.Time }

func newBubbleClock() bubbleClock { return bubbleClock{time.Now().Add(-time.Hour)} }

func (c bubbleClock) Now() time.Duration { return time.Since(c.start) }

// fakeMembers is the rest of a group as a session sees it.
type fakeMembers struct {
	mu      sync.Mutex
	leader  string
	changed chan struct{}
	clients map[string]*fakeClient
}

func newFakeMembers(leader string, nodes ...string) *fakeMembers {
	f := &fakeMembers{leader: leader, changed: make(chan struct{}), clients: map[string]*fakeClient{}}
	for _, n := range nodes {
		f.clients[n] = &fakeClient{}
	}
	return f
}

func (f *fakeMembers) lead(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader = node
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeMembers) leaderHint() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leader
}

func (f *fakeMembers) leaderChanged() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fakeMembers) client(node string) (wire.ClusterClient, error) {
	if c, ok := f.clients[node]; ok {
		return c, nil
	}
	return nil, errors.New("address is not known")
}

func (f *fakeMembers) bystander(not ...string) string {
	for n := range f.clients {
		if !slices.Contains(not, n) {
			return n
		}
	}
	return ""
}

func (f *fakeMembers) applied() uint64 { return 42 }

func (f *fakeMembers) sealed(r *wire.Renewal) (*wire.RenewRequest, error) {
	encoded, err := proto.Marshal(r)
	return &wire.RenewRequest{Renewal: encoded}, err
}

func (f *fakeMembers) heard(*wire.RenewReply) {}

// fakeClient is one member's cluster port. A nil handler means that no answer ever comes.
type fakeClient struct {
	wire.ClusterClient

	mu        sync.Mutex
	refuse    error                                // of opening a stream
	hang      bool                                 // opening a stream takes for ever
	reluctant bool                                 // a stream opens, and is never taken
	renewal   func(*fakeStream, *wire.Renewal)     // on a stream
	renew     func(*wire.Renewal) *wire.RenewReply // by the detour
	streams   []*fakeStream
	detoured  []*wire.Renewal
}

func (c *fakeClient) Session(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[wire.SessionUp, wire.SessionDown], error) {
	c.mu.Lock()
	hang, refuse := c.hang, c.refuse
	s := &fakeStream{ctx: ctx, client: c, down: make(chan *wire.SessionDown, 64), end: make(chan error, 1)}
	if !hang && refuse == nil {
		c.streams = append(c.streams, s)
	}
	c.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if refuse != nil {
		return nil, refuse
	}
	return s, nil
}

func (c *fakeClient) Renew(ctx context.Context, r *wire.RenewRequest, _ ...grpc.CallOption) (*wire.RenewReply, error) {
	renewal := &wire.Renewal{}
	if err := proto.Unmarshal(r.GetRenewal(), renewal); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.detoured = append(c.detoured, renewal)
	f := c.renew
	c.mu.Unlock()
	if f == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f(renewal), nil
}

func (c *fakeClient) opened() []*fakeStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*fakeStream(nil), c.streams...)
}

func (c *fakeClient) detours() []*wire.Renewal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*wire.Renewal(nil), c.detoured...)
}

// fakeStream is one session stream.
type fakeStream struct {
	grpc.ClientStream
	ctx    context.Context
	client *fakeClient
	down   chan *wire.SessionDown
	end    chan error

	mu   sync.Mutex
	up   []*wire.Renewal
	byes int
}

func (s *fakeStream) Header() (metadata.MD, error) {
	if s.client.reluctant {
		<-s.ctx.Done()
		return nil, s.ctx.Err()
	}
	return nil, nil
}

func (s *fakeStream) Send(m *wire.SessionUp) error {
	s.client.mu.Lock()
	answer := s.client.renewal
	s.client.mu.Unlock()
	if m.GetBye() != nil {
		s.mu.Lock()
		s.byes++
		s.mu.Unlock()
		select {
		case s.end <- io.EOF:
		default:
		}
		return nil
	}
	s.mu.Lock()
	s.up = append(s.up, m.GetRenewal())
	s.mu.Unlock()
	if answer != nil {
		answer(s, m.GetRenewal())
	}
	return nil
}

func (s *fakeStream) Recv() (*wire.SessionDown, error) {
	select {
	case m := <-s.down:
		return m, nil
	default:
	}
	select {
	case m := <-s.down:
		return m, nil
	case err := <-s.end:
		return nil, err
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *fakeStream) CloseSend() error { return nil }

func (s *fakeStream) renewals() []*wire.Renewal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*wire.Renewal(nil), s.up...)
}

func (s *fakeStream) goodbyes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byes
}

// acknowledge is a leader that acknowledges everything at once.
func acknowledge(s *fakeStream, r *wire.Renewal) {
	s.down <- &wire.SessionDown{Msg: &wire.SessionDown_Ack{Ack: ack(r)}}
}

func ack(r *wire.Renewal) *wire.RenewReply {
	return &wire.RenewReply{Seq: r.GetSeq(), Acknowledged: true, Fences: r.GetFences()}
}

// stuckStream is a consumer that takes nothing.
type stuckStream struct {
	grpc.ServerStreamingServer[wire.FollowReply]
	ctx context.Context
}

func (s stuckStream) Context() context.Context { return s.ctx }
func (s stuckStream) Send(*wire.FollowReply) error {
	<-s.ctx.Done()
	return s.ctx.Err()
}

// upStream is the leader's end of a session stream.
type upStream struct {
	grpc.ServerStream
	ctx  context.Context
	up   chan *wire.SessionUp
	down chan *wire.SessionDown
}

func (s *upStream) Context() context.Context       { return s.ctx }
func (s *upStream) SendHeader(metadata.MD) error   { return nil }
func (s *upStream) Send(m *wire.SessionDown) error { s.down <- m; return nil }
func (s *upStream) Recv() (m *wire.SessionUp, _ error) {
	select {
	case m = <-s.up:
		return m, nil
	case <-s.ctx.Done():
		return nil, io.EOF
	}
}
