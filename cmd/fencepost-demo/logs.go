package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// entry is one line of a node's log, with those of its attributes that the demo looks at.
type entry struct {
	by string // the node that wrote it

	Time      time.Time `json:"time"`
	Level     string    `json:"level"`
	Msg       string    `json:"msg"`
	Position  uint64    `json:"position"`
	Node      string    `json:"node"`
	Run       string    `json:"run"`
	Evidence  string    `json:"evidence"`
	Why       string    `json:"why"`
	Recovers  string    `json:"recovers"`
	Appointee string    `json:"appointee"`
	Task      string    `json:"task"`
	Component string    `json:"component"`
	Item      string    `json:"item"`
	Token     uint64    `json:"token"`
	Fence     uint64    `json:"fence"`
	Attempt   int       `json:"attempt"`
	Was       string    `json:"was"`
	Is        string    `json:"is"`
	Waited    string    `json:"waited"`
}

// readLogs reads the logs of all processes of the nodes, from the kill on.
func readLogs(nodes []*node, from time.Time) ([]entry, error) {
	var out []entry
	for _, n := range nodes {
		for _, path := range n.logs {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read the log of node %s: %w", n.name, err)
			}
			for _, e := range parseLog(n.name, text) {
				if e.Time.After(from) {
					out = append(out, e)
				}
			}
		}
	}
	return out, nil
}

// parseLog leaves out what is no line of a log: half a line at the end of a killed process's, or a crash.
func parseLog(by string, text []byte) []entry {
	var out []entry
	for line := range bytes.Lines(text) {
		e := entry{by: by}
		if json.Unmarshal(line, &e) == nil {
			out = append(out, e)
		}
	}
	return out
}

// troubleLines bounds what showTrouble prints.
const troubleLines = 20

// showTrouble prints the last warnings of the nodes, and what is no line of a log: a demo that failed is to be understood
// after its logs are gone.
func (d *demo) showTrouble() {
	var lines []string
	for _, n := range d.nodes {
		for _, path := range n.logs {
			text, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			for line := range bytes.Lines(text) {
				var e entry
				if json.Unmarshal(line, &e) != nil || e.Level == "WARN" || e.Level == "ERROR" {
					lines = append(lines, n.name+" | "+string(bytes.TrimSpace(line)))
				}
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	d.out.line("\nThe last warnings of the nodes\n")
	for _, line := range lines[max(0, len(lines)-troubleLines):] {
		d.out.line("%s", line)
	}
}
