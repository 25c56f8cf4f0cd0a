package web

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// timeLine is the picture of a recovery: a lane for the dead node, one for the group's log, one for each node that tried to
// recover; marks from left to right in the order in which things happened. It is not to scale: what matters happens within
// milliseconds, and what is waited for takes minutes.
type timeLine struct {
	Width, Height int
	Lanes         []lane
	Marks         []mark
	Path          string // that joins the marks
}

type lane struct {
	Y    int
	Name string
}

// mark is one thing that happened.
type mark struct {
	X, Y          int
	Tone          string // dead, log, fence, orphan, good, bad
	What          string // two or three words
	Offset        string // since the first one
	Note          string // such as "token 42"
	At            *time.Time
	LabelY, NoteY int

	lane string
}

const (
	laneFirst, laneStep = 64, 104
	markFirst, markStep = 130, 128
	theLog              = "the group's log"
)

// draw makes the picture.
func draw(r api.Recovery, orphans []orphan) timeLine {
	var l timeLine
	raised := lastRaised(r.Steps)
	for i, s := range r.Steps {
		l.Marks = append(l.Marks, marksOf(r, s)...)
		if i == raised {
			for _, o := range orphans {
				at := o.Line.At
				l.Marks = append(l.Marks, mark{Tone: "orphan", What: "orphan " + cutTo(nameOf(o), 11), Note: o.Was + " → " + o.Is, At: &at, lane: r.Recoverer})
			}
		}
	}
	l.place(r)
	return l
}

func nameOf(o orphan) string {
	if o.Task.Database != "" {
		return o.Task.Database
	}
	return short(o.Task.ID)
}

func cutTo(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func lastRaised(steps []api.Step) int {
	for i, s := range slices.Backward(steps) {
		if s.What == api.FenceRaised {
			return i
		}
	}
	return -1
}

// marksOf are the marks of a step. The closing is two: the evidence, and the view without the run, which is one entry of the
// log.
func marksOf(r api.Recovery, s api.Step) []mark {
	m := mark{What: s.What, At: s.At, lane: theLog, Tone: "log", Note: "position " + strconv.FormatUint(s.Position, 10)}
	switch s.What {
	case "closed":
		evidence := mark{What: "evidence", At: s.At, lane: r.Node, Tone: "dead", Note: r.Evidence}
		m.What, m.Note = "view "+shortPosition(s.Position), "without "+r.Node
		return []mark{evidence, m}
	case "quiesced":
		m.lane, m.Note = r.Node, "nothing of it runs"
	case api.FenceAppointed:
		m.Note = s.Node
	case api.FenceRaised:
		m.What, m.lane, m.Tone, m.Note = "fence raised", s.Node, "fence", "token "+shortPosition(s.Token)
	case "failed":
		m.lane, m.Tone, m.Note = s.Node, "bad", cutTo(s.Why, 20)
	case "released":
		m.What, m.lane, m.Tone, m.Note = "fence lowered", r.Recoverer, "good", "released"
	case "parked", "dropped":
		m.Tone, m.Note = "bad", cutTo(s.Why, 20)
	case "handed over":
		m.Note = "by " + s.Node
	}
	return []mark{m}
}

// shortPosition is the end of a number of which the beginning is always the same: it counts from the microseconds of 1970.
func shortPosition(n uint64) string {
	if text := strconv.FormatUint(n, 10); len(text) > 8 {
		return "…" + text[len(text)-6:]
	}
	return strconv.FormatUint(n, 10)
}

// place gives each lane and mark its place.
func (l *timeLine) place(r api.Recovery) {
	names := []string{r.Node, theLog}
	for _, m := range l.Marks {
		if m.lane != "" && !slices.Contains(names, m.lane) {
			names = append(names, m.lane)
		}
	}
	at := map[string]int{"": laneFirst + laneStep}
	for i, name := range names {
		at[name] = laneFirst + i*laneStep
		l.Lanes = append(l.Lanes, lane{at[name], name})
	}
	var first *time.Time
	for i := range l.Marks {
		m := &l.Marks[i]
		m.X, m.Y = markFirst+i*markStep, at[m.lane]
		m.LabelY, m.NoteY = m.Y-18, m.Y+28
		if first == nil {
			first = m.At
		}
		if m.At != nil {
			m.Offset = offset(m.At.Sub(*first))
		}
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		l.Path += fmt.Sprintf("%s%d %d ", verb, m.X, m.Y)
	}
	l.Width, l.Height = markFirst+max(0, len(l.Marks)-1)*markStep+90, laneFirst+(len(names)-1)*laneStep+66
}

// offset is the time since the first mark. Two clocks may differ by a little: what comes later is not shown as earlier.
func offset(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("+%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("+%.1f s", d.Seconds())
	}
	return "+" + span(d)
}
