package api

import "context"

// PathReload is the path of a reading of the configuration again.
const PathReload = "/api/v1/reload"

// Reload says what became of a configuration that was read again.
type Reload struct {
	File    string   `json:"file"`
	Applied []string `json:"applied"` // keys that have changed and took effect
	Restart []string `json:"restart"` // keys that have changed and need a restart
}

// Reload has the daemon that answers read its configuration again; code usage when it is not valid: the old one stays.
func (c *Client) Reload(ctx context.Context) (Reload, error) {
	return post[Reload](ctx, c, PathReload, struct{}{})
}
