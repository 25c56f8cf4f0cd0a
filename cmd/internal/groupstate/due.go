package groupstate

import "time"

// When a state is stored again: soon after a change, and each night, so that its age says whether it still is.
const (
	apart   = time.Minute    // between two objects in one storage, and between two tries
	nightAt = 1 * time.Hour  // after midnight UTC
	TooOld  = 36 * time.Hour // a night was missed
	// LateAfter is how long a storage may fail to take it before people are told.
	LateAfter = 10 * time.Minute
)

// Copy is what a group knows of its state in one storage.
type Copy struct {
	Format  int       `json:"format"`
	Object  string    `json:"object,omitempty"` // name of the newest; empty: there is none yet
	Token   uint64    `json:"token,omitempty"`
	At      time.Time `json:"at,omitzero"`      // when it was made
	Digest  string    `json:"digest,omitempty"` // of what is in it
	Bytes   int       `json:"bytes,omitempty"`
	Without []string  `json:"without,omitempty"`
	Problem string    `json:"problem,omitempty"` // why it could not be made anew since
	Since   time.Time `json:"since,omitzero"`    // of the problem
}

// CopyFormat is that of a Copy: 1.
const CopyFormat = 1

// Due tells whether the state with a digest is to be stored now; tried is when that was tried last. Pure.
func (c Copy) Due(digest string, tried, now time.Time) bool {
	if now.Sub(tried) < apart {
		return false
	}
	return c.Object == "" || c.Digest != digest && now.Sub(c.At) >= apart || c.At.Before(lastNight(now))
}

func lastNight(now time.Time) time.Time {
	night := now.UTC().Truncate(24 * time.Hour).Add(nightAt)
	if night.After(now) {
		night = night.Add(-24 * time.Hour)
	}
	return night
}

// Failed is c after a try that failed.
func (c Copy) Failed(err error, now time.Time) Copy {
	if c.Problem == "" {
		c.Since = now
	}
	c.Format, c.Problem = CopyFormat, err.Error()
	return c
}

// Old tells whether there should be a newer one.
func (c Copy) Old(now time.Time) bool { return c.Object != "" && now.Sub(c.At) >= TooOld }

// Late tells whether it has failed for so long that a person should look.
func (c Copy) Late(now time.Time) bool { return c.Problem != "" && now.Sub(c.Since) >= LateAfter }
