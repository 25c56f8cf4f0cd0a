package consensus

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// cells is a stable store that loses its power before a chosen write.
type cells struct {
	numbers map[string]uint64
	bytes   map[string][]byte
	left    int  // writes until the power goes; negative: never
	strict  bool // a missing key is an error, as with one of the library's stores
}

var errPower = errors.New("power cut")

func newCells() *cells {
	return &cells{numbers: map[string]uint64{}, bytes: map[string][]byte{}, left: -1}
}

func (c *cells) write() error {
	if c.left == 0 {
		return errPower
	}
	c.left--
	return nil
}

func (c *cells) Set(key, val []byte) error {
	if err := c.write(); err != nil {
		return err
	}
	c.bytes[string(key)] = val
	return nil
}

func (c *cells) SetUint64(key []byte, val uint64) error {
	if err := c.write(); err != nil {
		return err
	}
	c.numbers[string(key)] = val
	return nil
}

func (c *cells) Get(key []byte) ([]byte, error) {
	v, ok := c.bytes[string(key)]
	if !ok && c.strict {
		return nil, errors.New("not found")
	}
	return v, nil
}

func (c *cells) GetUint64(key []byte) (uint64, error) { return c.numbers[string(key)], nil }

// vote does what Raft does for each vote.
func vote(s raft.StableStore, term uint64, candidate string) error {
	if err := s.SetUint64([]byte(keyVoteTerm), term); err != nil {
		return err
	}
	return s.Set([]byte(keyVoteCand), []byte(candidate))
}

func readVote(t *testing.T, s raft.StableStore) (uint64, string) {
	t.Helper()
	term, err := s.GetUint64([]byte(keyVoteTerm))
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := s.Get([]byte(keyVoteCand))
	if err != nil && err.Error() != "not found" {
		t.Fatal(err)
	}
	return term, string(candidate)
}

// Wherever the power goes, the vote afterwards is the old one or the new one, never the new term beside the old candidate.
func TestVoteSurvivesPowerCutWhole(t *testing.T) {
	for _, strict := range []bool{false, true} {
		cut := 0
		for ; ; cut++ {
			disk := newCells()
			disk.strict = strict
			if err := vote(&votes{StableStore: disk}, 5, "old"); err != nil {
				t.Fatal(err)
			}
			disk.left = cut
			err := vote(&votes{StableStore: disk}, 6, "new")
			term, candidate := readVote(t, &votes{StableStore: disk}) // after the restart
			switch {
			case err != nil && (term != 5 || candidate != "old"):
				t.Errorf("cut before write %d: voted for %q in term %d", cut, candidate, term)
			case err == nil && (term != 6 || candidate != "new"):
				t.Errorf("uncut: voted for %q in term %d", candidate, term)
			}
			if err == nil {
				break
			}
		}
		if cut != 1 {
			t.Errorf("a vote is %d writes", cut)
		}
	}
}

func TestVoteOfEarlierFormatIsRead(t *testing.T) {
	disk := newCells()
	if term, candidate := readVote(t, &votes{StableStore: disk}); term != 0 || candidate != "" {
		t.Errorf("an empty store has a vote for %q in term %d", candidate, term)
	}
	if err := vote(disk, 5, "old"); err != nil { // two keys
		t.Fatal(err)
	}
	v := &votes{StableStore: disk}
	if term, candidate := readVote(t, v); term != 5 || candidate != "old" {
		t.Errorf("the vote is for %q in term %d", candidate, term)
	}
	if err := vote(v, 6, "new"); err != nil {
		t.Fatal(err)
	}
	if term, candidate := readVote(t, &votes{StableStore: disk}); term != 6 || candidate != "new" {
		t.Errorf("the vote is for %q in term %d", candidate, term)
	}
}

func TestVoteNeedsItsTerm(t *testing.T) {
	v := &votes{StableStore: newCells()}
	if err := v.Set([]byte(keyVoteCand), []byte("x")); err == nil {
		t.Error("a candidate without a term was stored")
	}
	if err := v.SetUint64([]byte("CurrentTerm"), 7); err != nil {
		t.Fatal(err)
	}
	if got, _ := v.GetUint64([]byte("CurrentTerm")); got != 7 {
		t.Errorf("another key reads %d", got)
	}
	v.StableStore.(*cells).bytes[keyVote] = []byte{1, 2}
	if _, err := v.GetUint64([]byte(keyVoteTerm)); err == nil {
		t.Error("a broken vote was read")
	}
}
