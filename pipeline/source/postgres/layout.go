package postgres

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fencepost/fencepost/pipeline/source"
)

// streamName is the part of the n-th stream of rows, from 1.
func streamName(n int) string {
	if n == 1 {
		return source.PartData
	}
	return fmt.Sprintf("%s-%d", source.PartData, n)
}

// fillingParts are the parts of a backup that fill a database, in their stages.
func fillingParts(info source.Info) [][]string {
	if info.Streams == 0 {
		return [][]string{{source.PartData}}
	}
	var rows []string
	for n := range info.Streams {
		rows = append(rows, streamName(n+1))
	}
	return [][]string{{source.PartPre}, rows, {source.PartPost}}
}

// progress says which parts a restore has read. Parts of one stage may be read at the same time.
type progress struct {
	stages [][]string

	mu     sync.Mutex
	begun  map[string]bool
	ended  map[string]bool // whole
	failed bool            // nothing of this may be committed
}

func newProgress(info source.Info) *progress {
	return &progress{stages: fillingParts(info), begun: map[string]bool{}, ended: map[string]bool{}}
}

// begin says whether it is a part's turn: once, and after all stages before its own.
func (p *progress) begin(part string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed {
		return errors.New("this restore has ended")
	}
	early := fmt.Errorf("part %q is not expected now", part)
	if p.begun[part] {
		return early
	}
	p.begun[part] = true
	for _, stage := range p.stages {
		if slices.Contains(stage, part) {
			return nil
		}
		for _, before := range stage {
			if !p.ended[before] {
				return early
			}
		}
	}
	if part == source.PartDatabase || part == source.PartGlobals {
		return nil
	}
	return early
}

// end notes how a part ended.
func (p *progress) end(part string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed = true
		return
	}
	p.ended[part] = true
}

func (p *progress) fail() { p.end("", errors.New("failed")) }

// isFailed tells whether nothing of this may be committed.
func (p *progress) isFailed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// filled tells whether every part that fills a database was read whole, and nothing failed.
func (p *progress) filled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range slices.Concat(p.stages...) {
		if !p.ended[part] {
			return false
		}
	}
	return !p.failed
}
