package api

import (
	"encoding/json"
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
	CodeNeedsApproval Code = "needs_approval" // it waits for a second person; nothing was done yet
	CodeUnauthorized  Code = "unauthorized"   // who asks did not say who they are, or nobody believes them
	CodeForbidden     Code = "forbidden"      // who asks may not do this
	CodeTooLarge      Code = "too_large"      // the request is longer than any that makes sense
	CodeTooMany       Code = "too_many"       // too many requests; later it may work
	CodeUnsupported   Code = "unsupported"    // the request's body is of another kind than wanted
	CodeMethod        Code = "method"         // there is such a path, but not with this method
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
	case CodeUsage, CodeTooLarge, CodeUnsupported, CodeMethod:
		return ExitUsage
	case CodeBusy, CodeTooMany:
		return ExitBusy
	case CodeLeaseLost:
		return ExitLeaseLost
	case CodeNotStopped:
		return ExitNotStopped
	case CodeNeedsOperator, CodeNeedsApproval:
		return ExitNeedsOperator
	default:
		return ExitFailed
	}
}

// kinds are the statuses of the codes, and the words for them that do not depend on the case.
var kinds = map[Code]struct {
	status int
	title  string
}{
	CodeFailed:        {http.StatusInternalServerError, "It did not work"},
	CodeUsage:         {http.StatusBadRequest, "The request makes no sense"},
	CodeNotFound:      {http.StatusNotFound, "There is no such thing"},
	CodeConflict:      {http.StatusConflict, "What is there stands against it"},
	CodeBusy:          {http.StatusConflict, "Somebody else is at it"},
	CodeUnavailable:   {http.StatusServiceUnavailable, "Not available now"},
	CodeLeaseLost:     {http.StatusServiceUnavailable, "The node may not act now"},
	CodeNotStopped:    {http.StatusConflict, "The former owner may still act"},
	CodeNeedsOperator: {http.StatusConflict, "It needs a decision"},
	CodeNeedsApproval: {http.StatusConflict, "It waits for a second person"},
	CodeUnauthorized:  {http.StatusUnauthorized, "Log in first"},
	CodeForbidden:     {http.StatusForbidden, "Not allowed"},
	CodeTooLarge:      {http.StatusRequestEntityTooLarge, "The request is too long"},
	CodeTooMany:       {http.StatusTooManyRequests, "Too many requests"},
	CodeUnsupported:   {http.StatusUnsupportedMediaType, "The request is of another kind than wanted"},
	CodeMethod:        {http.StatusMethodNotAllowed, "Not with this method"},
}

// HTTPStatus is the status of an answer with an error of this code.
func (c Code) HTTPStatus() int {
	if k, ok := kinds[c]; ok {
		return k.status
	}
	return http.StatusInternalServerError
}

// Error is an error that travels: what went wrong in one sentence, and what to do about
// it. Neither holds a secret.
type Error struct {
	Code     Code
	Message  string
	Hint     string
	Approval string // id of the request that waits for a second person, with CodeNeedsApproval
}

// Error is the message; the hint is shown apart.
func (e *Error) Error() string { return e.Message }

// ProblemType is the media type of an error's answer (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is an error as it travels.
type Problem struct {
	Type   string `json:"type"`   // urn:fencepost:problem: and the code
	Title  string `json:"title"`  // words for the code
	Status int    `json:"status"` // of the answer
	Detail string `json:"detail"` // what went wrong, in one sentence
	Code   Code   `json:"code"`
	Hint   string `json:"hint,omitempty"` // what to do about it
	// Approval is the id of the request that waits for a second person, with the code needs_approval.
	Approval string `json:"approval,omitempty"`
}

// Problem is the error as it travels.
func (e *Error) Problem() Problem {
	k, ok := kinds[e.Code]
	if !ok {
		k = kinds[CodeFailed]
	}
	return Problem{Type: "urn:fencepost:problem:" + string(e.Code), Title: k.title, Status: k.status, Detail: e.Message, Code: e.Code, Hint: e.Hint, Approval: e.Approval}
}

// MarshalJSON writes the problem.
func (e *Error) MarshalJSON() ([]byte, error) { return json.Marshal(e.Problem()) }

// UnmarshalJSON reads a problem.
func (e *Error) UnmarshalJSON(text []byte) error {
	var p Problem
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	*e = Error{Code: p.Code, Message: p.Detail, Hint: p.Hint, Approval: p.Approval}
	return nil
}

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
