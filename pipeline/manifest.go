package pipeline

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/source"
)

// Bounds of a manifest.
const (
	manifestFormat   = 2 // 1 was never signed
	firstFormat      = 1
	MaxManifest      = 1 << 20 // bytes
	maxObjects       = 64
	maxProcessors    = 16
	maxDatabaseBytes = 1024
	maxKitBytes      = 256
)

// Manifest is the self-description of one attempt in one storage. Its creation, last and only if absent, is the commit
// there. A void one is a tombstone: the attempt can never be committed in that storage.
type Manifest struct {
	Format     int         `json:"format"`
	Backup     string      `json:"backup"`
	Token      uint64      `json:"token"`
	Void       bool        `json:"void,omitempty"`
	Reason     string      `json:"reason,omitempty"` // why it is void
	Database   string      `json:"database"`         // configured name
	Source     source.Info `json:"source"`
	AsOf       time.Time   `json:"as_of"` // time of the snapshot
	Created    time.Time   `json:"created"`
	Objects    []Object    `json:"objects,omitempty"`    // in the order in which they are restored
	Processors []string    `json:"processors,omitempty"` // in the order in which they were applied
	Kit        string      `json:"kit,omitempty"`        // fingerprint of the keys that read it (processor.KitID)
	Writer     string      `json:"writer,omitempty"`     // version of the program

	// Who has made it; all empty when it is not signed.
	Cluster   string            `json:"cluster,omitempty"` // id of the group
	Node      string            `json:"node,omitempty"`
	Key       ed25519.PublicKey `json:"key,omitempty"`       // the node's, base64
	Signature []byte            `json:"signature,omitempty"` // of all before it, base64; the last field
}

// Object is one stored part.
type Object struct {
	Name         string `json:"name"`
	RawBytes     int64  `json:"raw_bytes"` // before the processors
	RawSHA256    string `json:"raw_sha256"`
	StoredBytes  int64  `json:"stored_bytes"` // as it lies in the storage
	StoredSHA256 string `json:"stored_sha256"`
}

// Tombstone is the void manifest of an attempt.
func Tombstone(backup string, token uint64, reason string, now time.Time) Manifest {
	return Manifest{Format: manifestFormat, Backup: backup, Token: token, Void: true, Reason: reason, Created: now}
}

// Encode checks m and returns its JSON.
func (m Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	out, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	if len(out) >= MaxManifest {
		return nil, fmt.Errorf("encode manifest: %d bytes, at most %d", len(out), MaxManifest)
	}
	return append(out, '\n'), nil
}

// DecodeManifest reads a manifest of at most MaxManifest bytes, strictly: unknown fields, a newer format, trailing
// bytes, values out of bounds and a signature that does not fit are errors. Whose signature it is, Judge says.
func DecodeManifest(r io.Reader) (Manifest, error) {
	var m Manifest
	data, err := io.ReadAll(io.LimitReader(r, MaxManifest+1))
	if err != nil {
		return m, fmt.Errorf("read manifest: %w", err)
	}
	if len(data) > MaxManifest {
		return m, fmt.Errorf("read manifest: more than %d bytes", MaxManifest)
	}
	var head struct{ Format int }
	if err := json.Unmarshal(data, &head); err != nil {
		return m, fmt.Errorf("decode manifest: %w", err)
	}
	if head.Format > manifestFormat {
		return m, fmt.Errorf("decode manifest: format %d, this program knows up to %d: a newer version wrote it", head.Format, manifestFormat)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("decode manifest: %w", err)
	}
	if err := errors.Join(m.check(), m.signed(data)); err != nil {
		return m, fmt.Errorf("decode manifest: %w", err)
	}
	return m, nil
}

// check holds what both directions demand.
func (m Manifest) check() error {
	if err := ledger.ValidID(m.Backup); err != nil {
		return err
	}
	switch {
	case m.Format < firstFormat || m.Format > manifestFormat:
		return fmt.Errorf("format is %d, want %d to %d", m.Format, firstFormat, manifestFormat)
	case m.Token == 0 || m.Token >= maxToken:
		return fmt.Errorf("token %d is out of bounds", m.Token)
	case len(m.Database) > maxDatabaseBytes:
		return fmt.Errorf("name of the database has %d bytes", len(m.Database))
	case len(m.Kit) > maxKitBytes:
		return fmt.Errorf("id of the kit has %d bytes", len(m.Kit))
	case len(m.Processors) > maxProcessors:
		return fmt.Errorf("%d processors, at most %d", len(m.Processors), maxProcessors)
	case len(m.Objects) > maxObjects:
		return fmt.Errorf("%d objects, at most %d", len(m.Objects), maxObjects)
	case m.Void && len(m.Objects) > 0:
		return errors.New("a void manifest has objects")
	case m.Void:
		return nil
	}
	return m.checkObjects()
}

func (m Manifest) checkObjects() error {
	seen := map[string]bool{}
	for _, o := range m.Objects {
		if !partName.MatchString(o.Name) || o.Name == manifestName || seen[o.Name] {
			return fmt.Errorf("object name %q is not allowed or not unique", o.Name)
		}
		seen[o.Name] = true
		if o.RawBytes < 0 || o.StoredBytes < 0 {
			return fmt.Errorf("object %s has a negative size", o.Name)
		}
		for _, sum := range []string{o.RawSHA256, o.StoredSHA256} {
			if b, err := hex.DecodeString(sum); err != nil || len(b) != 32 {
				return fmt.Errorf("object %s: %q is no SHA-256", o.Name, sum)
			}
		}
	}
	if !seen[source.PartData] {
		return fmt.Errorf("there is no object %q", source.PartData)
	}
	return nil
}

// RawBytes is the size of all parts before the processors.
func (m Manifest) RawBytes() (n int64) {
	for _, o := range m.Objects {
		n += o.RawBytes
	}
	return n
}

// StoredBytes is the size of all parts in a storage.
func (m Manifest) StoredBytes() (n int64) {
	for _, o := range m.Objects {
		n += o.StoredBytes
	}
	return n
}

// object finds a part.
func (m Manifest) object(name string) (Object, bool) {
	for _, o := range m.Objects {
		if o.Name == name {
			return o, true
		}
	}
	return Object{}, false
}

// entry is the completed ledger entry of m.
func (m Manifest) entry(copies []ledger.Copy) *ledger.Backup {
	data, _ := m.object(source.PartData)
	return &ledger.Backup{
		ID: m.Backup, Database: m.Database, State: ledger.BackupCompleted, Token: m.Token, AsOf: m.AsOf, Info: m.Source,
		RawBytes: m.RawBytes(), SHA256: data.RawSHA256, Copies: copies,
	}
}
