package state

import (
	"encoding/hex"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/fencepost/fencepost/gms/internal/wire"
)

// Bounds of what commands may carry; beyond them they are refused as CODE_INVALID (values and numbers of things: CODE_TOO_LARGE).
const (
	MaxName       = 255       // bytes of a node, component, item, lock or address
	MaxKey        = 1024      // bytes of a cache key
	MaxText       = 4096      // bytes of a text for people; the sender cuts it
	MaxComponents = 64        // of a run
	MaxDetails    = 8192      // bytes of a run's details, keys and values together
	MaxOpenRun    = 128 << 10 // bytes of the whole description of a run, encoded
	MaxLease      = 86400000  // milliseconds that a run's lease, or that of its fences, may last: a day
	MaxClaims     = 1 << 16
	MaxLocks      = 1 << 14
)

const (
	idSize  = 16
	keySize = 32 // ed25519 public key
)

// RunID is the random id of a run. The zero value stands for none.
type RunID [idSize]byte

// RunIDOf reads an id from its wire form; false when it is not 16 bytes or all zero.
func RunIDOf(b []byte) (RunID, bool) {
	var id RunID
	if len(b) != idSize {
		return id, false
	}
	copy(id[:], b)
	return id, !id.IsZero()
}

// IsZero reports whether the id stands for no run.
func (r RunID) IsZero() bool { return r == RunID{} }

// String is the id in hexadecimal.
func (r RunID) String() string { return hex.EncodeToString(r[:]) }

// Bytes is the wire form, a copy; nil for the zero id.
func (r RunID) Bytes() []byte {
	if r.IsZero() {
		return nil
	}
	return r[:]
}

// envelope checks what every command has and reads its issuing run.
func envelope(c *wire.Command) (RunID, bool) {
	var run RunID
	if len(c.GetRun()) > 0 {
		var ok bool
		if run, ok = RunIDOf(c.GetRun()); !ok {
			return run, false
		}
	}
	if len(c.GetClient()) == 0 {
		return run, true
	}
	return run, len(c.GetClient()) == idSize && c.GetSeq() > 0 && c.GetAcked() < c.GetSeq()
}

func validName(s string) bool { return s != "" && len(s) <= MaxName && utf8.ValidString(s) }

func validText(s string) bool { return len(s) <= MaxText && utf8.ValidString(s) }

func validComponent(c *wire.Component) bool {
	return validName(c.GetName()) &&
		c.GetSelector() >= 0 && c.GetSelector() <= wire.Selector_SELECTOR_SUCCESSOR &&
		c.GetExclusion() >= 0 && c.GetExclusion() <= wire.Exclusion_EXCLUSION_LEASE
}

func validOpenRun(c *wire.OpenRun) bool {
	_, ok := RunIDOf(c.GetRun())
	if !ok || !validName(c.GetNode()) || len(c.GetHome()) != idSize || len(c.GetNodeKey()) != keySize {
		return false
	}
	if n := len(c.GetWardenKey()); n != 0 && n != keySize {
		return false
	}
	if c.GetRole() < wire.Role_ROLE_CORE || c.GetRole() > wire.Role_ROLE_WITNESS {
		return false
	}
	if len(c.GetGossipAddr()) > MaxName || len(c.GetClusterAddr()) > MaxName ||
		!utf8.ValidString(c.GetGossipAddr()) || !utf8.ValidString(c.GetClusterAddr()) {
		return false
	}
	if c.GetTtlMs() > MaxLease || c.GetFenceTtlMs() > MaxLease {
		return false
	}
	if len(c.GetComponents()) > 0 && !works(c.GetRole()) || proto.Size(c) > MaxOpenRun {
		return false
	}
	return validOrders(c.GetOrders()) && validComponents(c.GetComponents()) && validDetails(c.GetDetails())
}

func validComponents(list []*wire.Component) bool {
	if len(list) > MaxComponents {
		return false
	}
	seen := make(map[string]bool, len(list))
	for _, c := range list {
		if !validComponent(c) || seen[c.GetName()] {
			return false
		}
		seen[c.GetName()] = true
	}
	return true
}

func validDetails(details map[string][]byte) bool {
	size := 0
	for k, v := range details {
		if !utf8.ValidString(k) {
			return false
		}
		size += len(k) + len(v)
	}
	return size <= MaxDetails
}

func validCacheKey(k *wire.CacheKey) bool {
	return validName(k.GetComponent()) &&
		len(k.GetMember()) <= MaxName && utf8.ValidString(k.GetMember()) &&
		k.GetKey() != "" && len(k.GetKey()) <= MaxKey && utf8.ValidString(k.GetKey())
}
