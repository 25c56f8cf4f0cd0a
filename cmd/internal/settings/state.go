package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/configs"
)

// Keys of the store. HeadKey changes with each change of a setting, FoundKey with each of what was found.
const (
	Prefix      = "settings/"
	HeadKey     = Prefix + "head"
	FoundKey    = Prefix + "found"
	onePrefix   = Prefix + "one/"    // one/<kind>/<name>
	foundPrefix = Prefix + "found/"  // found/<server>/<name>
	lookPrefix  = Prefix + "looked/" // looked/<server>
)

const format = 1

// Entered tells whether the record of a key is what a group has that is made anew from what it kept: a setting, or a database
// that was found by one. HeadKey and FoundKey are not: Touch makes them.
func Entered(key string) bool {
	return strings.HasPrefix(key, onePrefix) || strings.HasPrefix(key, foundPrefix)
}

// Touch is the change that has everybody look at records which were put as they are: of HeadKey, or of FoundKey.
func Touch(r kept.Record) (kept.Change, error) {
	h := head{Format: format}
	if r.Version != 0 {
		if err := json.Unmarshal(r.Value, &h); err != nil {
			return kept.Change{}, fmt.Errorf("read what is kept of the settings: %w", err)
		}
	}
	if r.Key == HeadKey {
		h.Version++
	}
	return kept.Put(r.Key, h, r.Version), nil
}

// one is the record of a setting.
type one struct {
	Format int             `json:"format"`
	Spec   json.RawMessage `json:"spec"`

	kind string // that its key says
}

// Needs is what the setting needs by what it says; see protocol.Needs.
func (o one) Needs() uint32 { return configs.Object{Kind: o.kind, Spec: o.Spec}.Protocol() }

// head is the record of them all.
type head struct {
	Format  int    `json:"format"`
	Version uint64 `json:"version"`
}

// Look is how a server answered last.
type Look struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Problem string    `json:"problem,omitempty"`
	Since   time.Time `json:"since,omitzero"` // of the problem
}

// State is all that is kept.
type State struct {
	Version  uint64
	Versions [2]uint64 // of the records HeadKey and FoundKey: another state has others
	Settings configs.Settings
	Found    []configs.Found // by server and name
	Looks    map[string]Look // by server
	// Problems are records that this version does not understand.
	Problems []configs.Problem

	records map[string]kept.Record
}

// Read makes a state of the records below Prefix. Pure.
func Read(records []kept.Record) State {
	s := State{Looks: map[string]Look{}, records: map[string]kept.Record{}}
	var objects []configs.Object
	for _, r := range records {
		s.records[r.Key] = r
		switch r.Key {
		case HeadKey:
			s.Versions[0] = r.Version
		case FoundKey:
			s.Versions[1] = r.Version
		}
		switch {
		case r.Key == HeadKey:
			var h head
			s.understood(r, json.Unmarshal(r.Value, &h))
			s.Version = h.Version
		case strings.HasPrefix(r.Key, onePrefix):
			if o, err := objectOf(r); s.understood(r, err) {
				objects = append(objects, o)
			}
		case strings.HasPrefix(r.Key, foundPrefix):
			var f configs.Found
			if s.understood(r, json.Unmarshal(r.Value, &f)) {
				s.Found = append(s.Found, f)
			}
		case strings.HasPrefix(r.Key, lookPrefix):
			var l Look
			if s.understood(r, json.Unmarshal(r.Value, &l)) {
				s.Looks[strings.TrimPrefix(r.Key, lookPrefix)] = l
			}
		}
	}
	var invalid *configs.Error
	var err error
	if s.Settings, err = configs.FromObjects(objects); errors.As(err, &invalid) {
		s.Problems = append(s.Problems, invalid.Problems...)
	}
	slices.SortFunc(s.Found, func(a, b configs.Found) int { return strings.Compare(a.Name(), b.Name()) })
	return s
}

// understood notes a record that is not.
func (s *State) understood(r kept.Record, err error) bool {
	if err != nil {
		s.Problems = append(s.Problems, configs.Problem{Path: strings.TrimPrefix(r.Key, Prefix), Text: "is not understood by this version: " + err.Error()})
	}
	return err == nil
}

func objectOf(r kept.Record) (configs.Object, error) {
	var o one
	if err := json.Unmarshal(r.Value, &o); err != nil {
		return configs.Object{}, err
	}
	if o.Format != format {
		return configs.Object{}, fmt.Errorf("it is of format %d", o.Format)
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(r.Key, onePrefix), "/")
	return configs.Object{Kind: kind, Name: name, Spec: o.Spec}, nil
}

func oneKey(o configs.Object) string { return onePrefix + o.Kind + "/" + o.Name }

func foundKey(f configs.Found) string { return foundPrefix + f.Server + "/" + f.Name() }
