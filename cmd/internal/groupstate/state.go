package groupstate

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// MaxState bounds a state, in bytes of JSON.
const MaxState = 32 << 20

// State is what was entered by people, and what backups need to be known for the group's own. Times that only say that
// something was used are not in it.
type State struct {
	Records  []Record               `json:"records"`            // what the daemon keeps for the group, by key
	Storages map[string]string      `json:"storages"`           // ids of the owner objects, by name
	Signers  []Signer               `json:"signers"`            // by key
	Marks    map[string]ledger.Mark `json:"marks,omitempty"`    // of backups, by id
	Disabled map[string]string      `json:"disabled,omitempty"` // who has disabled a schedule, by name
	Paused   map[string]string      `json:"paused,omitempty"`   // who has paused a component, by name
	Ledger   string                 `json:"ledger,omitempty"`   // kind of it: embedded or postgres
}

// Record is one record of what the daemon keeps.
type Record struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Signer is a key that manifests were signed with.
type Signer struct {
	Key     string `json:"key"` // hex
	Node    string `json:"node"`
	Cluster string `json:"cluster"` // id of the group that it signed for
}

// Sort puts the lists of s in their order, in place.
func (s State) Sort() {
	slices.SortFunc(s.Records, func(a, b Record) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(s.Signers, func(a, b Signer) int { return cmp.Compare(a.Key, b.Key) })
}

// Digest is a fingerprint of s, whose lists are in order: another state has another one.
func (s State) Digest() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("groupstate: a state of plain fields was not encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Pack is s as one node hands it to another, without any encryption.
func (s State) Pack() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the state: %w", err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("pack the state: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack the state: %w", err)
	}
	return out.Bytes(), nil
}

// Unpack reads what Pack has made.
func Unpack(packed []byte) (State, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return State{}, fmt.Errorf("unpack the state: %w", err)
	}
	text, err := readAll(r)
	if err != nil {
		return State{}, fmt.Errorf("unpack the state: %w", err)
	}
	return decode(text)
}

func readAll(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, MaxState+1))
	if err == nil && len(text) > MaxState {
		err = fmt.Errorf("it is longer than %d bytes", MaxState)
	}
	return text, err
}

// decode reads a state strictly: what this version does not know must not be passed over.
func decode(text []byte) (s State, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return State{}, fmt.Errorf("decode the state: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return State{}, errors.New("decode the state: something follows it")
	}
	return s, nil
}

// Comparison is what a group's records are to those of a state.
type Comparison struct {
	New     []Record // that the group does not have, or has otherwise
	Same    int      // that it has just so
	Against []string // keys of those that it has and the state has not, or has otherwise
}

// Compare tells what of the records of a state a group does not have. Both are in order of key. Pure.
func Compare(have, want []Record) (c Comparison) {
	is := make(map[string]json.RawMessage, len(have))
	for _, r := range have {
		is[r.Key] = r.Value
	}
	for _, r := range want {
		value, there := is[r.Key]
		delete(is, r.Key)
		switch {
		case there && sameJSON(value, r.Value):
			c.Same++
			continue
		case there:
			c.Against = append(c.Against, r.Key)
		}
		c.New = append(c.New, r)
	}
	for key := range is {
		c.Against = append(c.Against, key)
	}
	slices.Sort(c.Against)
	return c
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}
