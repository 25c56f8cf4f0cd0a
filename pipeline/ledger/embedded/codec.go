package embedded

import (
	"encoding/json"
	"fmt"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// format is the version of the rows that this program writes.
const format = 1

// Prefixes of keys.
const (
	taskPrefix   = "task/"
	backupPrefix = "backup/"
	cancelPrefix = "cancel/"
	gatePrefix   = "gate/"
)

// cancelRow is the value of a cancel/<id> key.
type cancelRow struct {
	By string `json:"by"`
}

// envelope is a row as it is stored.
type envelope[T any] struct {
	Format int `json:"v"`
	Row    T   `json:"row"`
}

// encode makes a Put of row, or an error when it is larger than MaxValue.
func encode[T any](key string, row T) (Put, error) {
	value, err := json.Marshal(envelope[T]{Format: format, Row: row})
	if err != nil {
		return Put{}, fmt.Errorf("encode %s: %w", key, err)
	}
	if len(value) > MaxValue {
		return Put{}, fmt.Errorf("encode %s: %d bytes, at most %d fit", key, len(value), MaxValue)
	}
	return Put{Key: key, Value: value, Row: row}, nil
}

// decode reads a row. The format is looked at first: a newer row may hold anything.
func decode[T any](it Item) (T, error) {
	var row T
	var head struct {
		Format int `json:"v"`
	}
	if err := json.Unmarshal(it.Value, &head); err != nil {
		return row, fmt.Errorf("decode %s: %w", it.Key, err)
	}
	if head.Format > format || head.Format < 1 {
		return row, fmt.Errorf("decode %s: row has format %d, this program knows 1 to %d: a newer version wrote it", it.Key, head.Format, format)
	}
	var e envelope[T]
	if err := json.Unmarshal(it.Value, &e); err != nil {
		return row, fmt.Errorf("decode %s: %w", it.Key, err)
	}
	return e.Row, nil
}

// conditions turns a guard into what the Store checks.
func conditions(g ledger.Guard) []Condition {
	cs := []Condition{
		{Kind: RunOpen, Run: g.Run},
		{Kind: ClaimHeld, Component: g.Component, Item: g.Item, Run: g.Run, Token: g.Token},
	}
	if g.Fence != nil {
		cs = append(cs, held(*g.Fence))
	}
	return cs
}

func held(f ledger.Fence) Condition {
	return Condition{Kind: FenceHeld, Component: f.Component, Node: f.Node, Run: f.Run, Token: f.Token}
}
