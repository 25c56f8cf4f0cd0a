package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// tag is what the application_name of a session says while it is inside a guarded transaction: whose it is, so that a
// shut-out can find it. It fits the server's 63 bytes.
type tag struct {
	run   string // as shortRun
	fence string // as fenceHash; "" in normal work
	token uint64 // of the fence
}

const tagPrefix = "fencepost/"

func tagOf(g ledger.Guard) tag {
	t := tag{run: shortRun(g.Run)}
	if g.Fence != nil {
		t.fence, t.token = fenceHash(*g.Fence), g.Fence.Token
	}
	return t
}

// String is the tag as an application_name: fencepost/<run>[/<fence>/<token>].
func (t tag) String() string {
	if t.fence == "" {
		return tagPrefix + t.run
	}
	return tagPrefix + t.run + "/" + t.fence + "/" + strconv.FormatUint(t.token, 36)
}

// parseTag reads an application_name; false when it is not one of ours.
func parseTag(name string) (tag, bool) {
	rest, ok := strings.CutPrefix(name, tagPrefix)
	if !ok {
		return tag{}, false
	}
	parts := strings.Split(rest, "/")
	switch len(parts) {
	case 1:
		return tag{run: parts[0]}, parts[0] != ""
	case 3:
		token, err := strconv.ParseUint(parts[2], 36, 64)
		return tag{run: parts[0], fence: parts[1], token: token}, err == nil
	}
	return tag{}, false
}

// shutOutBy tells whether f shuts out the sessions tagged t: those of the dead run, and those of earlier holders of f.
func (t tag) shutOutBy(f ledger.Fence) bool {
	return t.run == shortRun(f.Run) || t.fence == fenceHash(f) && t.token < f.Token
}

// shortRun is a run id that fits a tag: 128 bits in hex do.
func shortRun(run string) string {
	if len(run) <= 32 && !strings.Contains(run, "/") {
		return run
	}
	sum := sha256.Sum256([]byte(run))
	return hex.EncodeToString(sum[:16])
}

// fenceHash is short: two fences that share it cost no more than a session ended in vain.
func fenceHash(f ledger.Fence) string {
	sum := sha256.Sum256([]byte("fence\x00" + f.Component + "\x00" + f.Node + "\x00" + f.Run))
	return hex.EncodeToString(sum[:4])
}

// runLock is the advisory lock of a run: shared by its writers, exclusive to who shuts it out.
func runLock(run string) int64 { return lockKey("fencepost run\x00" + run) }

// fenceLock is the advisory lock of a fence, shared by those who write under it.
func fenceLock(f ledger.Fence) int64 {
	return lockKey("fencepost fence\x00" + f.Component + "\x00" + f.Node + "\x00" + f.Run)
}

// lockKey is 64 bits: two names that share a lock only wait for one another.
func lockKey(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
