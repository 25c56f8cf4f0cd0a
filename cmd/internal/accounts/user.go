package accounts

import (
	"fmt"
	"regexp"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// user is what is kept of a user.
type user struct {
	Name     string    `json:"name"`
	Role     api.Role  `json:"role"`
	Hash     string    `json:"hash"`
	Disabled bool      `json:"disabled,omitempty"`
	Created  time.Time `json:"created"`
	By       string    `json:"by"`
	Changed  time.Time `json:"changed"` // password, role or state
	// Since is drawn anew whenever what was given out before must end: sessions name it.
	Since       string    `json:"since"`
	Failures    int       `json:"failures,omitempty"` // wrong passwords in a row
	LockedUntil time.Time `json:"locked_until,omitzero"`
	LastLogIn   time.Time `json:"last_log_in,omitzero"`
}

func (u user) shown(now time.Time) api.User {
	out := api.User{Name: u.Name, Role: u.Role, Disabled: u.Disabled, Created: u.Created, By: u.By, Changed: u.Changed}
	if u.LockedUntil.After(now) {
		out.LockedUntil = &u.LockedUntil
	}
	if !u.LastLogIn.IsZero() {
		out.LastLogIn = &u.LastLogIn
	}
	return out
}

// Lock-out: so many wrong passwords in a row are free; from then on each locks for twice as long as the last.
const (
	freeFailures = 5
	firstLock    = time.Minute
	longestLock  = time.Hour
)

// lockFor is how long a user is locked after so many wrong passwords in a row.
func lockFor(failures int) time.Duration {
	if failures < freeFailures {
		return 0
	}
	lock := firstLock
	for range failures - freeFailures {
		if lock *= 2; lock >= longestLock {
			return longestLock
		}
	}
	return lock
}

// failed is u after a wrong password at now.
func (u user) failed(now time.Time) user {
	u.Failures++
	if lock := lockFor(u.Failures); lock > 0 {
		u.LockedUntil = now.Add(lock)
	}
	return u
}

// mayLogIn tells whether a right password lets u in at now.
func (u user) mayLogIn(now time.Time) bool { return !u.Disabled && !u.LockedUntil.After(now) }

var names = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)

func checkName(what, name string) error {
	if !names.MatchString(name) {
		return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("%s: %q is no name: want 1 to 63 of a-z, 0-9, \"._-\", beginning with a letter", what, name)}
	}
	return nil
}

func checkRole(r api.Role) error {
	if !r.Known() {
		return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("role: %q is none: want one of viewer, operator, admin", r)}
	}
	return nil
}
