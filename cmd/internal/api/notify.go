package api

import "context"

// PathNotifyTest is the path of a test of notifications.
const PathNotifyTest = "/api/v1/notify/test"

// TestNotify asks for a test message.
type TestNotify struct {
	Receiver string `json:"receiver,omitempty"` // empty: all
}

// NotifyResult is what became of a test message to one receiver.
type NotifyResult struct {
	Receiver string `json:"receiver"`
	Problem  string `json:"problem,omitempty"` // empty: delivered
}

// TestNotify has the daemon that answers deliver a test message, and returns what became of it, by receiver.
func (c *Client) TestNotify(ctx context.Context, r TestNotify) ([]NotifyResult, error) {
	return post[[]NotifyResult](ctx, c, PathNotifyTest, r)
}
