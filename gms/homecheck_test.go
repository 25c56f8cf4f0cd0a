package gms

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// A member that hangs, and one that fails, keep nobody else from being asked what a home held: else a home that lacks
// entries would start beside them, and vote without memory. Who comes later is asked too.
func TestWhoHangsHidesNoRecord(t *testing.T) {
	known, unknown := &wire.HomePositionReply{ClusterId: make([]byte, 16)}, &wire.HomePositionReply{}
	older := &wire.HomePositionReply{ClusterId: make([]byte, 16), Known: true, Index: 100}
	for name, c := range map[string]struct {
		replies map[string]*wire.HomePositionReply // of those that answer; n2 hangs
		late    string                             // comes after 200 ms
		fails   int                                // first calls of n3
		reads   int                                // then as many calls that find it without its log
		want    error
		took    time.Duration
	}{
		"another knows":                           {replies: map[string]*wire.HomePositionReply{"n3": older}, want: ErrOlderHome},
		"another knows, who fails at first":       {replies: map[string]*wire.HomePositionReply{"n3": older}, fails: 2, want: ErrOlderHome, took: 200 * time.Millisecond},
		"another knows, once it has read its log": {replies: map[string]*wire.HomePositionReply{"n3": older}, reads: 2, want: ErrOlderHome, took: 200 * time.Millisecond},
		"another knows, who comes later":          {replies: map[string]*wire.HomePositionReply{"n3": older}, late: "n3", want: ErrOlderHome, took: 200 * time.Millisecond},
		"the last one knows":                      {replies: map[string]*wire.HomePositionReply{"n3": known, "n4": unknown, "n5": older}, want: ErrOlderHome},
		"nobody knows":                            {replies: map[string]*wire.HomePositionReply{"n3": known}, took: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLooseGroup(t)
				for i, node := range []string{"n2", "n3", "n4", "n5"} {
					if node != c.late {
						g.peers.put(metaOf(byte(i+2), node, "0123456789abcdef"), "", true)
					} else {
						time.AfterFunc(200*time.Millisecond, func() { g.peers.put(metaOf(byte(i+2), node, "0123456789abcdef"), "", true) })
					}
				}
				failed, read := 0, 0
				q := newInquiry(func(ctx context.Context, node string) (*wire.HomePositionReply, error) {
					r := c.replies[node]
					if node == "n3" && failed < c.fails {
						failed++
						return nil, errAny
					}
					if node == "n3" && read < c.reads {
						read++
						return unknown, nil
					}
					if r == nil {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return r, nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				begun := time.Now()
				err := q.run(ctx, g.recordKeepers, func(r *wire.HomePositionReply) error { return g.judgeHome(r, 99) })
				if took := time.Since(begun); !errors.Is(err, c.want) || c.want == nil && err != nil || took != c.took {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// A home is not held up for longer than it takes all to answer, and not at all when nobody is to be expected.
func TestTheRecordIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLooseGroup(t)
		g.peers.put(metaOf(1, "n1", "0123456789abcdef"), "", true)
		q := newInquiry(func(context.Context, string) (*wire.HomePositionReply, error) {
			time.Sleep(30 * time.Millisecond)
			return &wire.HomePositionReply{ClusterId: make([]byte, 16)}, nil
		})
		begun := time.Now()
		run := func() error {
			return q.run(t.Context(), g.recordKeepers, func(*wire.HomePositionReply) error { return nil })
		}
		if err := run(); err != nil || time.Since(begun) != 0 {
			t.Errorf("alone: %v after %v", err, time.Since(begun))
		}
		for i, node := range []string{"n2", "n3", "n4"} {
			g.peers.put(metaOf(byte(i+2), node, "0123456789abcdef"), "", true)
		}
		if err := run(); err != nil || time.Since(begun) != 30*time.Millisecond {
			t.Errorf("among others: %v after %v", err, time.Since(begun))
		}
	})
}
