package api

import (
	"errors"
	"net/http"
)

// Code classifies an error for those who branch on it.
type Code string

// Codes.
const (
	CodeFailed        Code = "failed"         // it did not work; the message says why
	CodeUsage         Code = "usage"          // the request makes no sense
	CodeNotFound      Code = "not_found"      // no such task, backup, database or storage
	CodeConflict      Code = "conflict"       // what is there stands against it (target exists, task has ended)
	CodeBusy          Code = "busy"           // somebody else is at it; later it may work
	CodeUnavailable   Code = "unavailable"    // no daemon, no leader, no quorum; later it may work
	CodeLeaseLost     Code = "lease_lost"     // the node may not act now: its lease has run out
	CodeNotStopped    Code = "not_stopped"    // it could not be proven that the former owner has stopped
	CodeNeedsOperator Code = "needs_operator" // goes no further without a decision
)

// Exit codes of commands.
const (
	ExitOK            = 0
	ExitFailed        = 1
	ExitUsage         = 2
	ExitBusy          = 3
	ExitLeaseLost     = 4
	ExitNotStopped    = 5
	ExitNeedsOperator = 6
)

// Exit is the exit code of a command that ended with an error of this code.
func (c Code) Exit() int {
	switch c {
	case CodeUsage:
		return ExitUsage
	case CodeBusy:
		return ExitBusy
	case CodeLeaseLost:
		return ExitLeaseLost
	case CodeNotStopped:
		return ExitNotStopped
	case CodeNeedsOperator:
		return ExitNeedsOperator
	default:
		return ExitFailed
	}
}

// HTTPStatus is the status of an answer with an error of this code.
func (c Code) HTTPStatus() int {
	switch c {
	case CodeUsage:
		return http.StatusBadRequest
	case CodeNotFound:
		return http.StatusNotFound
	case CodeConflict, CodeBusy, CodeNotStopped, CodeNeedsOperator:
		return http.StatusConflict
	case CodeUnavailable, CodeLeaseLost:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// Error is an error that travels: what went wrong in one sentence, and what to do about
// it. Neither holds a secret.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error is the message; the hint is shown apart.
func (e *Error) Error() string { return e.Message }

// ExitCode is the exit code for err: that of its *Error, or ExitFailed.
func ExitCode(err error) int {
	var e *Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &e):
		return e.Code.Exit()
	default:
		return ExitFailed
	}
}

// TaskError is the error that a finished task stands for; nil when it completed.
func TaskError(t Task) error {
	if !t.Final || t.State == Completed {
		return nil
	}
	message := "task " + t.ID + " was " + t.State
	if t.State == "failed" {
		message = "task " + t.ID + " failed"
	}
	if t.Error != "" {
		message += ": " + t.Error
	}
	return &Error{Code: CodeFailed, Message: message, Hint: t.Hint}
}
