package chaos

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Judges look at records and say, one sentence each, what must not be. None of them waits for anything.

// judgeViews: every history of views is a piece of one, complete from where it begins.
func judgeViews(members map[string][]note) (broken []string) {
	history := map[uint64]string{}
	var versions []uint64
	for who, notes := range members {
		for _, n := range notes {
			if n.Kind != "view" {
				continue
			}
			is := strings.Join(n.Runs, " ")
			was, known := history[n.Version]
			if known && was != is {
				broken = append(broken, fmt.Sprintf("view %d is %q at %s, and %q elsewhere", n.Version, is, who, was))
			}
			if !known {
				history[n.Version] = is
				versions = append(versions, n.Version)
			}
		}
	}
	slices.Sort(versions)
	for who, notes := range members {
		last := uint64(0) // 0: nothing was seen before
		for _, n := range notes {
			switch {
			case n.Kind != "view":
				continue
			case n.Gap, last == 0:
			case n.Version <= last:
				broken = append(broken, fmt.Sprintf("%s saw view %d after %d", who, n.Version, last))
			default:
				at, _ := slices.BinarySearch(versions, last)
				if next := versions[at+1]; next != n.Version {
					broken = append(broken, fmt.Sprintf("%s saw view %d after %d, and not %d", who, n.Version, last, next))
				}
			}
			last = n.Version
		}
	}
	return broken
}

// judgeHolds: at no time do two hold the same, and tokens grow. Each note says what was certainly held at its time.
func judgeHolds(members map[string][]note) (broken []string) {
	var holds []note
	for _, notes := range members {
		for _, n := range notes {
			if n.Kind == "hold" {
				holds = append(holds, n)
			}
		}
	}
	slices.SortFunc(holds, func(a, b note) int { return cmp.Compare(a.T, b.T) })
	last := map[string]note{}
	for _, n := range holds {
		was, known := last[n.What]
		switch {
		case known && n.Token < was.Token:
			broken = append(broken, fmt.Sprintf("%s: run %s held it with token %d at %v, and run %s with %d at %v before", n.What, n.Run, n.Token, n.T, was.Run, was.Token, was.T))
		case known && n.Token == was.Token && n.Run != was.Run:
			broken = append(broken, fmt.Sprintf("%s: runs %s and %s both held it with token %d", n.What, was.Run, n.Run, n.Token))
		}
		last[n.What] = n
	}
	return broken
}

// judgeRecoveries: what members tell of a recovery is the same, its fences' tokens grow, and it ends once, by a release. At
// the end of a run, all have ended.
func judgeRecoveries(seen []api.Recovery, over bool) (broken []string) {
	last := map[string]api.Recovery{}
	for _, r := range seen {
		name := fmt.Sprintf("%s of %s/%s", r.Component, r.Node, r.Run)
		was, known := last[name]
		if known && was.Ended != 0 {
			if r.Ended != 0 && (r.Ended != was.Ended || r.Token != was.Token || r.State != was.State) {
				broken = append(broken, fmt.Sprintf("%s ended at %d (%s, token %d), and at %d (%s, token %d)", name, was.Ended, was.State, was.Token, r.Ended, r.State, r.Token))
			}
			if r.Ended == 0 {
				continue // by a member that is behind
			}
		}
		token, released := uint64(0), 0
		for _, s := range r.Steps {
			if s.What == "raised" {
				if s.Token <= token {
					broken = append(broken, fmt.Sprintf("%s: a fence of token %d was raised after one of %d", name, s.Token, token))
				}
				token = s.Token
			}
			if s.What == "released" {
				released++
			}
		}
		if released > 1 || r.State == "dropped" || r.Ended != 0 && released == 0 {
			broken = append(broken, fmt.Sprintf("%s: %d releases, state %s", name, released, r.State))
		}
		last[name] = r
	}
	for name, r := range last {
		if over && r.Ended == 0 {
			broken = append(broken, fmt.Sprintf("%s never ended: %s %s", name, r.State, r.Problem))
		}
	}
	return broken
}

// judgeClosed: the work of each host app's run that ended, but for those that left with nothing to do, has been recovered.
func judgeClosed(members map[string][]note, seen []api.Recovery) (broken []string) {
	last, open, settled := uint64(0), []string(nil), map[string]bool{}
	ended := map[string]bool{}
	for _, notes := range members {
		for _, n := range notes {
			switch n.Kind {
			case "left":
				settled[n.Run] = true
			case "view":
				for _, r := range n.Runs {
					ended[r] = true
				}
				if n.Version > last {
					last, open = n.Version, n.Runs
				}
			}
		}
	}
	for _, r := range open {
		delete(ended, r)
	}
	for _, r := range seen {
		if r.Component == jobs && r.Ended != 0 {
			settled[r.Run] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ended)) {
		if _, run, _ := strings.Cut(name, "/"); name[0] == 'h' && !settled[run] {
			broken = append(broken, fmt.Sprintf("run %s ended, and nobody recovered its jobs", name))
		}
	}
	return broken
}

// operation is a call and how it ended.
type operation struct {
	call, end note
	ended     bool
}

// operations pairs calls with their ends; what has none was cut off with its process.
func operations(members map[string][]note, wanted ...string) (list []operation) {
	at := map[uint64]int{}
	for _, notes := range members {
		for _, n := range notes {
			if !slices.Contains(wanted, n.Op) {
				continue
			}
			if n.Kind == "call" {
				at[n.ID] = len(list)
				list = append(list, operation{call: n})
				continue
			}
			list[at[n.ID]].end, list[at[n.ID]].ended = n, true
		}
	}
	return list
}

const forever = math.MaxInt64

// cell is one key of the cache as a single machine would keep it; access is what a client did and was told.
type cell struct {
	value   string
	version uint64
}

type access struct {
	op, key string
	cell           // read: what was there; else: what was put
	on      uint64 // swap: the version expected
}

func cacheModel() porcupine.Model {
	return porcupine.Model{
		Partition: byKey(func(in any) string { return in.(access).key }),
		Init:      func() any { return cell{} },
		Step: func(state, input, _ any) (bool, any) {
			s, a := state.(cell), input.(access)
			switch a.op {
			case "read":
				return s == a.cell, s
			case "swap":
				return s.version == a.on && a.version > s.version, a.cell
			}
			return a.version > s.version, a.cell
		},
		DescribeOperation: func(in, _ any) string { return fmt.Sprintf("%+v", in) },
	}
}

// byKey makes a history of each key of one of them all.
func byKey(key func(input any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		index := map[string]int{}
		for _, o := range all {
			k := key(o.Input)
			if _, known := index[k]; !known {
				index[k] = len(parts)
				parts = append(parts, nil)
			}
			parts[index[k]] = append(parts[index[k]], o)
		}
		return parts
	}
}

// cacheHistory makes a history of reads, puts and swaps. A write whose client does not know what became of it, and that
// nobody has read, explains nothing and is left out; one that somebody has read has the version that was read.
func cacheHistory(members map[string][]note) (history []porcupine.Operation) {
	list := operations(members, "read", "put", "swap")
	read := map[string]uint64{}
	for _, o := range list {
		if o.call.Op == "read" && o.end.Outcome == "ok" {
			read[o.end.Value] = o.end.Version
		}
	}
	for i, o := range list {
		a := access{op: o.call.Op, key: o.call.What, cell: cell{o.call.Value, o.end.Version}, on: o.call.Version}
		op := porcupine.Operation{ClientId: i, Call: int64(o.call.T), Return: int64(o.end.T)}
		switch {
		case a.op == "read":
			if a.value = o.end.Value; o.end.Outcome != "ok" && o.end.Outcome != "none" {
				continue
			}
		case o.end.Outcome == "no":
			continue
		case !o.ended || o.end.Outcome == "unknown":
			op.Return = forever
			if a.version = read[a.value]; a.version == 0 {
				continue
			}
		}
		op.Input = a
		history = append(history, op)
	}
	return history
}

// grip is what happened to a lock or a fence: somebody got it, or an end.
type grip struct {
	lock  string
	token uint64
	got   bool
	last  bool // an end after which nobody gets it: a fence that was released
}

// gripState is a lock or a fence as a single machine would keep it.
type gripState struct {
	last   uint64
	holder uint64 // token; 0: free
	over   bool
}

func lockModel() porcupine.Model {
	return porcupine.Model{
		Partition: byKey(func(in any) string { return in.(grip).lock }),
		Init:      func() any { return gripState{} },
		Step: func(state, input, _ any) (bool, any) {
			s, g := state.(gripState), input.(grip)
			if g.got {
				return s.holder == 0 && g.token > s.last && !s.over, gripState{last: g.token, holder: g.token}
			}
			return s.holder == g.token, gripState{last: s.last, over: g.last}
		},
		DescribeOperation: func(in, _ any) string { return fmt.Sprintf("%+v", in) },
	}
}

// lockHistory makes a history of grants and ends of locks.
func lockHistory(members map[string][]note) []porcupine.Operation {
	return gripHistory(operations(members, "lock"), operations(members, "unlock"), false)
}

// fenceHistory makes a history of raised and released fences.
func fenceHistory(members map[string][]note) []porcupine.Operation {
	return gripHistory(operations(members, "raise"), operations(members, "release"), true)
}

// gripHistory makes a history of grants and ends. An end that its client does not know of may have come at any time. A fence
// that its holder is given again, for another try, is the same one.
func gripHistory(taken, given []operation, last bool) (history []porcupine.Operation) {
	ends, met := map[string]operation{}, map[string]bool{}
	for _, o := range given {
		if o.end.Outcome == "ok" {
			ends[fmt.Sprint(o.call.What, o.call.Version)] = o
		}
	}
	for i, o := range taken {
		name := fmt.Sprint(o.call.What, o.end.Version)
		if o.end.Outcome != "ok" || last && met[name] {
			continue
		}
		met[name] = true
		g := grip{lock: o.call.What, token: o.end.Version, got: true}
		history = append(history, porcupine.Operation{ClientId: i, Input: g, Call: int64(o.call.T), Return: int64(o.end.T)})
		g.got = false
		end := porcupine.Operation{ClientId: i, Call: int64(o.call.T), Return: forever}
		if e, known := ends[name]; known {
			end.Call, end.Return, g.last = int64(e.call.T), int64(e.end.T), last
		}
		end.Input = g
		history = append(history, end)
	}
	return history
}

// judgeHistory: a history is one that a single machine could have had. The picture of one that is not is written to a file.
func judgeHistory(what string, m porcupine.Model, history []porcupine.Operation, picture string) (broken []string) {
	verdict, info := porcupine.CheckOperationsVerbose(m, history, 2*time.Minute)
	if verdict == porcupine.Ok {
		return nil
	}
	text := fmt.Sprintf("the history of %s, of %d operations, is not that of a single machine (%v); its picture is %s", what, len(history), verdict, picture)
	if err := porcupine.VisualizePath(m, info, picture); err != nil {
		text += ": " + err.Error()
	}
	return []string{text}
}

// trail is one write that the ledger's database has committed, in the order of commits.
type trail struct {
	Table  string // tasks, backups, runs, fences
	Row    string // its key; of a fence component, node and run, with slashes between them
	Token  uint64 // of the row
	Shut   bool   // of runs: the run is shut out
	Writer string // application_name of a guarded write: fencepost/RUN[/FENCE/TOKEN]
}

// judgeTrail: no row's token ever decreases, and nothing is written by a run after it was shut out, nor under a fence after
// a later holder of it shut out those before.
func judgeTrail(list []trail) (broken []string) {
	tokens, shut, fences := map[string]uint64{}, map[string]bool{}, map[string]uint64{}
	for _, w := range list {
		tag := strings.Split(strings.TrimPrefix(w.Writer, "fencepost/"), "/")
		name := w.Table + " " + w.Row
		if guarded := strings.HasPrefix(w.Writer, "fencepost/"); guarded && shut[tag[0]] {
			broken = append(broken, fmt.Sprintf("ledger: %s was written by run %s after it was shut out", name, tag[0]))
		}
		if len(tag) == 3 {
			if token, err := strconv.ParseUint(tag[2], 36, 64); err != nil || token < fences[tag[1]] {
				broken = append(broken, fmt.Sprintf("ledger: %s was written under a fence by its holder %s, after %d had shut that out", name, w.Writer, fences[tag[1]]))
			}
		}
		if w.Token < tokens[name] {
			broken = append(broken, fmt.Sprintf("ledger: %s has token %d after %d", name, w.Token, tokens[name]))
		}
		tokens[name] = w.Token
		switch w.Table {
		case "runs":
			shut[w.Row] = shut[w.Row] || w.Shut
		case "fences":
			fences[hashOf(w.Row)] = w.Token
		}
	}
	return broken
}

// hashOf is how a session's application_name calls a fence.
func hashOf(fence string) string {
	sum := sha256.Sum256([]byte("fence\x00" + strings.ReplaceAll(fence, "/", "\x00")))
	return hex.EncodeToString(sum[:4])
}

// request is one line of a storage's log.
type request struct {
	Operation, Object string // object: with its storage first
	Status            int
}

// creating are the requests that make an object: to the S3 server, and to Dropbox.
var creating = []string{"PutObject", "CompleteMultipartUpload", "files/upload", "files/upload_session/finish"}

// judgeStore: what commits an attempt, its manifest, is made once. It may be replaced once, by that which makes the attempt void
// where others lack it, and then the attempt's data goes; one that was removed never comes back; and no attempt is committed, or
// made void, after a later one of the same backup was.
func judgeStore(log []request) (broken []string) {
	made, gone, newest := map[string]int{}, map[string]bool{}, map[string]string{}
	stays := map[string]string{} // manifests that were replaced, by attempt, until data of the attempt is removed
	for _, r := range log {
		at := strings.LastIndexByte(r.Object, '/')
		if r.Status/100 != 2 || at < 0 {
			continue
		}
		attempt, manifest := r.Object[:at], r.Object[at:] == "/manifest.json"
		if strings.Contains(strings.ToLower(r.Operation), "delete") {
			gone[attempt] = gone[attempt] || manifest
			delete(stays, attempt)
			continue
		}
		if !manifest || !slices.Contains(creating, r.Operation) {
			continue
		}
		switch made[attempt]++; {
		case gone[attempt] || made[attempt] > 2:
			broken = append(broken, r.Object+" was made again")
		case made[attempt] == 2:
			stays[attempt] = r.Object
		}
		cut := strings.LastIndexByte(attempt, '/') // tokens in paths sort as they are
		backup, token := attempt[:cut+1], attempt[cut+1:]
		if token < newest[backup] {
			broken = append(broken, fmt.Sprintf("%s was made after that of attempt %s", r.Object, newest[backup]))
		}
		newest[backup] = max(newest[backup], token)
	}
	for _, object := range stays {
		broken = append(broken, object+" was made a second time, and the attempt's data stays")
	}
	return broken
}
