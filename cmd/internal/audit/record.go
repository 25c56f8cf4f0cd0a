package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Phases of a change.
const (
	Asked   = "asked"   // it will be tried now
	Done    = "done"    // it was made, or planned
	Failed  = "failed"  // it was tried, and did not come about
	Refused = "refused" // it was not tried
)

// Entry is what is to be recorded; the trail adds number, time, node and hashes.
type Entry struct {
	Actor   string
	Role    api.Role
	Via     string
	Address string
	Action  string // such as backup.delete
	Target  string // what it is about: an id or a name
	Phase   string
	Of      uint64 // number of the Asked that this is the end of
	Problem string // why it failed or was refused
	// Approver is the second person, where it took one.
	Approver string
	// Request, Before and After are JSON without secrets; empty: none.
	Request, Before, After json.RawMessage
}

// seal gives an entry its place: after the record of prev.
func seal(r api.AuditRecord, prev string) api.AuditRecord {
	r.Prev, r.Hash = prev, ""
	r.Hash = hashOf(r)
	return r
}

// hashOf is the hash of all of a record but the hash itself.
func hashOf(r api.AuditRecord) string {
	r.Hash = ""
	text, err := json.Marshal(r)
	if err != nil {
		panic("audit: a record of plain fields was not encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Check tells what is wrong with records, which follow each other as they were made. nil: each one is as it was written, and
// follows the one before.
func Check(records []api.AuditRecord) error {
	for i, r := range records {
		if got := hashOf(r); got != r.Hash {
			return fmt.Errorf("record %d was altered: its hash is %.12s, not %.12s", r.Seq, got, r.Hash)
		}
		if i == 0 {
			continue
		}
		if before := records[i-1]; r.Seq != before.Seq+1 {
			return fmt.Errorf("record %d follows record %d", r.Seq, before.Seq)
		} else if r.Prev != before.Hash {
			return fmt.Errorf("record %d does not follow the record %d that is here: it names another hash", r.Seq, before.Seq)
		}
	}
	return nil
}
