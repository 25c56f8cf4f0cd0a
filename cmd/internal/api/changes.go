package api

// Base is what all paths of the API begin with.
const Base = "/api/v1"

// Paths of the API's description, which needs no log-in, and of its changes.
const (
	PathOpenAPI = Base + "/openapi.json"
	PathChanges = Base + "/changes"
)

// Change is one event of PathChanges, whose name is the resource: what is at Path has now this tag, as a GET would answer.
// At first there is one of each resource; a reader that was away has so missed nothing. A stream ends after ten minutes: who
// goes on listening opens another.
type Change struct {
	Resource string `json:"resource"` // view, fences, recoveries, tasks, backups, schedules, components, claims
	Path     string `json:"path"`
	Tag      string `json:"tag"` // empty: it cannot be read now
}

// HeaderIdempotencyKey is the header that names a request for repeats: 1 to 255 printable characters without spaces, drawn by
// who asks.
const HeaderIdempotencyKey = "Idempotency-Key"
