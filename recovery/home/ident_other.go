//go:build !linux

package home

import (
	"errors"
	"os"
)

// bootKnown: this system does not say when it was started anew, so that a seal counts only while its keeper lives.
const bootKnown = false

// Self is the identity of this process: here only its number.
func Self(run string) (Ident, error) { return Ident{PID: os.Getpid(), Run: run}, nil }

// Identify is the identity of a process: here only its number.
func Identify(pid int) (Ident, error) { return Ident{PID: pid}, nil }

func bootID() (string, error) { return "", nil }

// Liveness is not known here, except of this process: a number may be another process by now.
func (i Ident) Liveness() Liveness {
	if i.PID == os.Getpid() {
		return Alive
	}
	return Unknown
}

// Kill is refused here: the number may be another process by now.
func (i Ident) Kill() error { return errors.ErrUnsupported }
