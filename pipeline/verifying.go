package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// verify runs a verify task: Verify, and what it found goes into the backup's entry together with the end of the task. The
// task has completed when every copy that it was asked about is whole.
func (a *attempt) verify(ctx, keep context.Context) error {
	t := a.row()
	if err := a.save(ctx, nil, func(t *ledger.Task) { t.State, t.Error, t.Hint = ledger.Downloading, "", "" }); err != nil {
		return err
	}
	entry, err := a.cfg.Ledger.Backup(ctx, t.Backup)
	if err != nil {
		return fmt.Errorf("read backup %s: %w", t.Backup, err)
	}
	r := VerifyRequest{Backup: t.Backup, Storages: t.Storages, Attempt: a.source(), Count: func(n int) { a.read.Add(int64(n)) }}
	if t.Scratch != "" {
		if r.Scratch = a.cfg.Catalog.Scratch[t.Scratch]; r.Scratch == nil {
			return fmt.Errorf("scratch server %q is not configured on this node: %w", t.Scratch, ErrUnavailable)
		}
	}
	a.estimate.Store(toRead(entry, t))
	found, err := Verify(ctx, a.cfg.Catalog, r)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	next, problem := judged(entry, found, err, a.cfg.Now().UTC())
	if problem != "" && len(next.Copies) == len(entry.Copies) && unknownOnly(found) && passing(err) {
		return err // nothing was learned: another time
	}
	return a.save(keep, &next, func(t *ledger.Task) {
		t.State = ledger.Completed
		if problem != "" {
			t.State, t.Error, t.Hint = ledger.Failed, problem, "the replicate component mends copies as long as one is whole; see the backup for what is wrong"
		}
	})
}

// toRead estimates the bytes of a verification.
func toRead(b ledger.Backup, t ledger.Task) (n int64) {
	for _, c := range b.Copies {
		if len(t.Storages) == 0 || slices.Contains(t.Storages, c.Storage) {
			n += c.Bytes
		}
	}
	return n
}

func unknownOnly(v Verified) bool {
	return !slices.ContainsFunc(v.Copies, func(c CopyVerdict) bool { return c.State != CopyUnknown })
}

// judged is the entry after a verification, and in one sentence what is wrong; "" when every copy that was asked about is
// whole. Pure.
func judged(b ledger.Backup, v Verified, err error, now time.Time) (ledger.Backup, string) {
	b.Copies = slices.Clone(b.Copies)
	var wrong []string
	whole, learned := 0, 0
	for _, verdict := range v.Copies {
		switch verdict.State {
		case CopyPresent:
			whole++
			learned++
		case CopyUnknown:
		default:
			learned++
		}
		if verdict.State != CopyPresent {
			wrong = append(wrong, fmt.Sprintf("storage %s: %s: %v", verdict.Storage, verdict.State, verdict.Err))
		}
		i := slices.IndexFunc(b.Copies, func(c ledger.Copy) bool { return c.Storage == verdict.Storage })
		if i < 0 || verdict.State == CopyUnknown {
			continue
		}
		b.Copies[i].State, b.Copies[i].Error = verdict.State, ""
		if verdict.Err != nil {
			b.Copies[i].Error = sentence(verdict.Err)
		}
	}
	left := slices.ContainsFunc(b.Copies, func(c ledger.Copy) bool { return c.State == CopyPresent })
	b.Suspect = slices.DeleteFunc(slices.Clone(b.Suspect), func(s string) bool { return strings.HasPrefix(s, verifiedBad) })
	switch {
	case learned > 0 && !left:
		b.Suspect = append(b.Suspect, verifiedBad+"no copy is whole")
	case err != nil && !errors.Is(err, ErrNoCopy) && !errors.Is(err, ErrScratchIsSource) && !errors.Is(err, ErrScratchUnfit) && !passing(err):
		b.Suspect = append(b.Suspect, verifiedBad+"it could not be restored: "+sentence(err))
	case whole > 0:
		b.Verified = now
	}
	if err != nil && !errors.Is(err, ErrNoCopy) {
		wrong = append(wrong, sentence(err))
	}
	return b, strings.Join(wrong, "; ")
}

// verifiedBad begins what a verification says of a suspect backup; the next one takes it back.
const verifiedBad = "verified: "
