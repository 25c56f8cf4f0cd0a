package groupstate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// format is that of objects: 1.
const format = 1

// purpose begins what is signed: a signature of anything else is none of a state.
const purpose = "fencepost group state\n"

const (
	maxHead   = 64 << 10
	maxObject = MaxState + maxHead
)

// Errors a caller branches on; the texts around them name the object and say what is wrong with it.
var (
	// ErrDamaged: the object is cut, was changed, or never was a state. Another one may be whole.
	ErrDamaged = errors.New("is damaged")
	// ErrNewer: a later version of this program has made it.
	ErrNewer = errors.New("was made by a newer version of fencepost")
	// ErrForeign: it is not what this storage's group has put there under this name: it was copied, renamed, or is another
	// group's.
	ErrForeign = errors.New("is not of the group that owns the storage")
	// ErrLocked: no key of those that are configured opens it.
	ErrLocked = errors.New("does not open with the keys that are configured here")
)

// Head is what an object says of itself before it is opened.
type Head struct {
	Format     int               `json:"format"`
	Group      string            `json:"group"`   // name
	Cluster    string            `json:"cluster"` // id of the group
	Storage    string            `json:"storage"` // id of the storage that it was made for
	Token      uint64            `json:"token"`
	Made       time.Time         `json:"made"`
	Node       string            `json:"node"`
	Key        ed25519.PublicKey `json:"key"`                  // the node's
	Processors []string          `json:"processors,omitempty"` // in the order in which they were applied
	Kit        string            `json:"kit,omitempty"`        // fingerprint of the keys that open it (processor.KitID)
	Without    []string          `json:"without,omitempty"`    // what is left out, since nothing encrypts
	Bytes      int               `json:"bytes"`                // that follow the second line
	SHA256     string            `json:"sha256"`               // of these
}

// Seal makes an object. chain are the processors of backups; sign signs with the key that h names. Format, processors, kit,
// size and hash of h are filled in.
func Seal(h Head, s State, chain []processor.Processor, sign func([]byte) []byte) ([]byte, error) {
	var body bytes.Buffer
	ordered, err := processor.Order(chain...)
	if err != nil {
		return nil, fmt.Errorf("seal the state: %w", err)
	}
	w, err := processor.WrapAll(ordered, &body)
	if err != nil {
		return nil, fmt.Errorf("seal the state: %w", err)
	}
	if err := json.NewEncoder(w).Encode(s); err != nil {
		return nil, fmt.Errorf("seal the state: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal the state: %w", err)
	}
	sum := sha256.Sum256(body.Bytes())
	h.Format, h.Processors, h.Kit = format, processor.Names(ordered), processor.KitID(ordered)
	h.Bytes, h.SHA256 = body.Len(), hex.EncodeToString(sum[:])
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("seal the state: %w", err)
	}
	if len(head) > maxHead || body.Len() > MaxState {
		return nil, fmt.Errorf("seal the state: it has %d bytes, at most %d", body.Len(), MaxState)
	}
	signature := base64.StdEncoding.EncodeToString(sign(append([]byte(purpose), head...)))
	return bytes.Join([][]byte{head, []byte(signature), body.Bytes()}, []byte("\n")), nil
}

// Sealed is an object that is whole, and not opened yet.
type Sealed struct {
	Head
	Name string
	body []byte
}

// Parse takes an object apart that lies under name. What is not whole, or not signed by the key that it names, is ErrDamaged.
func Parse(name string, text []byte) (Sealed, error) {
	damaged := func(why string) (Sealed, error) {
		return Sealed{}, fmt.Errorf("the group's state %s %w: %s", name, ErrDamaged, why)
	}
	head, rest, ok := bytes.Cut(text, []byte("\n"))
	if !ok {
		return damaged("it has no first line")
	}
	var of struct{ Format int }
	if json.Unmarshal(head, &of) != nil {
		return damaged("its first line is none of a state")
	}
	if of.Format > format {
		return Sealed{}, fmt.Errorf("the group's state %s %w: it is of format %d, and this one knows %d", name, ErrNewer, of.Format, format)
	}
	out := Sealed{Name: name}
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	if err := d.Decode(&out.Head); err != nil || out.Format != format {
		return damaged("its first line is not understood")
	}
	line, body, ok := bytes.Cut(rest, []byte("\n"))
	signature, err := base64.StdEncoding.DecodeString(string(line))
	if !ok || err != nil || base64.StdEncoding.EncodeToString(signature) != string(line) || len(out.Key) != ed25519.PublicKeySize || !ed25519.Verify(out.Key, append([]byte(purpose), head...), signature) {
		return damaged("its signature does not fit")
	}
	sum := sha256.Sum256(body)
	if len(body) != out.Bytes || hex.EncodeToString(sum[:]) != out.SHA256 {
		return damaged(fmt.Sprintf("it has %d bytes of %d, or others", len(body), out.Bytes))
	}
	out.body = body
	return out, nil
}

// Belongs says why an object is not one that the owner of the storage has made there: nil, or ErrForeign. A group that has
// taken the storage over from the one that made it may name that one's id as before.
func (s Sealed) Belongs(owner storage.Owner, before string) error {
	why := ""
	switch token, _ := TokenOf(s.Name); {
	case s.Storage != owner.Storage:
		why = "it was made for another storage"
	case s.Cluster != owner.Cluster && s.Cluster != before:
		why = fmt.Sprintf("it is of group %s (%.40s)", s.Group, s.Cluster)
	case token != s.Token:
		why = fmt.Sprintf("it is number %d under another name", s.Token)
	default:
		return nil
	}
	return fmt.Errorf("the group's state %s %w: %s", s.Name, ErrForeign, why)
}

// Open gives the state. Without the right keys the error is ErrLocked.
func (s Sealed) Open(known processor.Registry) (State, error) {
	text, err := s.plain(known)
	if errors.Is(err, processor.ErrKey) {
		return State{}, fmt.Errorf("the group's state %s %w%s: %w", s.Name, ErrLocked, s.wants(), err)
	}
	var out State
	if err == nil {
		out, err = decode(text)
	}
	if err != nil {
		return State{}, fmt.Errorf("the group's state %s cannot be read: %w", s.Name, err)
	}
	return out, nil
}

// plain is the body without what processors have made of it.
func (s Sealed) plain(known processor.Registry) ([]byte, error) {
	r, err := known.UnwrapAll(s.Processors, bytes.NewReader(s.body))
	if err != nil {
		return nil, err
	}
	text, err := readAll(r)
	return text, errors.Join(err, r.Close())
}

// wants says which keys it takes, where they have a name.
func (s Sealed) wants() string {
	if s.Kit == "" {
		return ""
	}
	return " (it takes those of kit " + s.Kit + ")"
}

// Encrypts tells whether what a chain has made opens by keys alone.
func Encrypts(chain []processor.Processor) bool {
	return slices.ContainsFunc(chain, func(p processor.Processor) bool { _, keyed := p.(processor.Keyed); return keyed })
}
