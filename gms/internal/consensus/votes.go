package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

const (
	keyVoteTerm = "LastVoteTerm"
	keyVoteCand = "LastVoteCand"
	keyVote     = "fencepost/vote" // term as 8 bytes, big endian, then the candidate
)

// votes makes a vote one write. Raft writes the term of a vote and then its candidate under two keys; a crash in between
// would leave the new term beside the old candidate, and a second request of that candidate would be granted without a
// look at its log. So the term is held back until the candidate comes, and both go under one key.
type votes struct {
	raft.StableStore

	mu      sync.Mutex
	pending bool // a term waits for its candidate
	term    uint64
}

func (v *votes) SetUint64(key []byte, val uint64) error {
	if string(key) != keyVoteTerm {
		return v.StableStore.SetUint64(key, val)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pending, v.term = true, val
	return nil
}

func (v *votes) Set(key, val []byte) error {
	if string(key) != keyVoteCand {
		return v.StableStore.Set(key, val)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.pending {
		return errors.New("store a vote: its term is missing")
	}
	v.pending = false
	vote := append(binary.BigEndian.AppendUint64(nil, v.term), val...)
	if err := v.StableStore.Set([]byte(keyVote), vote); err != nil {
		return fmt.Errorf("store a vote: %w", err)
	}
	return nil
}

func (v *votes) GetUint64(key []byte) (uint64, error) {
	if string(key) != keyVoteTerm {
		return v.StableStore.GetUint64(key)
	}
	vote, err := v.read()
	if err != nil {
		return 0, err
	}
	if vote == nil { // written before votes were one key, or never
		return v.StableStore.GetUint64(key)
	}
	return binary.BigEndian.Uint64(vote), nil
}

func (v *votes) Get(key []byte) ([]byte, error) {
	if string(key) != keyVoteCand {
		return v.StableStore.Get(key)
	}
	vote, err := v.read()
	if err != nil {
		return nil, err
	}
	if vote == nil {
		return v.StableStore.Get(key)
	}
	return vote[8:], nil
}

// read gives the vote as it is stored, nil if none is. Of the two kinds of store one answers a missing key with nothing,
// the other with an error of this text, which Raft itself compares.
func (v *votes) read() ([]byte, error) {
	vote, err := v.StableStore.Get([]byte(keyVote))
	if err != nil && err.Error() != "not found" {
		return nil, fmt.Errorf("read the vote: %w", err)
	}
	if len(vote) == 0 {
		return nil, nil
	}
	if len(vote) < 8 {
		return nil, fmt.Errorf("read the vote: %d bytes are too few", len(vote))
	}
	return vote, nil
}
