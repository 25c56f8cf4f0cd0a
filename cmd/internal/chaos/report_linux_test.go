package chaos

import (
	"cmp"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// checked is one thing that was looked at.
type checked struct {
	What   string
	Broken []string
}

func (c checked) verdict() string {
	if len(c.Broken) > 0 {
		return "broken"
	}
	return "held"
}

// verdict notes what a judge said.
func (c *chronicle) verdict(what string, broken []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checks = append(c.checks, checked{what, broken})
	c.list = append(c.list, event{looks, time.Since(c.start), 0, checked{what, broken}.verdict() + ": " + what})
}

// reportDir is where pages go.
func reportDir() string {
	dir := cmp.Or(os.Getenv(reportEnv), filepath.Join(os.TempDir(), "fencepost-chaos"))
	_ = os.MkdirAll(dir, 0o755)
	return dir
}

// report writes the page of a run.
func (w *world) report() (file string, err error) {
	file = filepath.Join(reportDir(), fmt.Sprintf("chaos-%d.html", w.plan.Seed))
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return file, w.said.page(w.plan, w.net.reason, w.t.Failed()).write(f)
}

// page is what the report shows. All in it is ready to be written.
type page struct {
	Title, Repeat, Network, Plan string
	Summary                      string
	Stale                        int // writes that the resource took, and should not have
	Failed                       bool
	Checks                       []checked
	Counts                       []string
	Width, Height                int
	Lanes                        []drawnLane
	Ticks                        []tick
	Events                       []drawnEvent
}

type drawnLane struct {
	Name string
	Y    int
}

type tick struct {
	X     int
	Label string
}

type drawnEvent struct {
	Lane       lane
	X, Y, W    int
	At, Text   string
	From, Till time.Duration
}

// Sizes of the time line.
const (
	pixels    = 4 // a second
	rowHeight = 14
	leftEdge  = 90
)

// page lays the time line out: in each lane, what lasted at the same time is in rows below each other.
func (c *chronicle) page(p plan, network string, failed bool) page {
	summary := c.summary()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := page{
		Title: fmt.Sprintf("chaos, seed %d", p.Seed), Repeat: fmt.Sprintf("make chaos SEED=%d MINUTES=%g", p.Seed, p.Until.Minutes()),
		Network: cmp.Or(network, "network namespaces on a bridge"), Plan: p.String(), Failed: failed, Checks: c.checks, Height: 20,
		Summary: summary, Stale: c.count[staleTaken],
	}
	for what, n := range c.count {
		out.Counts = append(out.Counts, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(out.Counts)
	events := slices.Clone(c.list)
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.From, b.From) })
	last := time.Duration(0)
	for _, l := range []lane{faults, views, recoveries, work, looks, aside} {
		out.Lanes = append(out.Lanes, drawnLane{string(l), out.Height + rowHeight})
		var rows []time.Duration // until when each is taken
		for _, e := range events {
			if e.Lane != l {
				continue
			}
			till := max(e.To, e.From+time.Second)
			row := slices.IndexFunc(rows, func(taken time.Duration) bool { return taken <= e.From })
			if row < 0 {
				row = len(rows)
				rows = append(rows, 0)
			}
			rows[row], last = till, max(last, till)
			out.Events = append(out.Events, drawnEvent{
				Lane: l, X: leftEdge + int(e.From.Seconds()*pixels), Y: out.Height + row*rowHeight + 4, W: max(3, int((till-e.From).Seconds()*pixels)-1),
				At: fmt.Sprintf("%.1f s", e.From.Seconds()), Text: e.Text, From: e.From, Till: e.To,
			})
		}
		out.Height += max(1, len(rows))*rowHeight + 12
	}
	for s := 0; s <= int(last.Seconds()); s += 30 {
		out.Ticks = append(out.Ticks, tick{leftEdge + s*pixels, fmt.Sprintf("%d:%02d", s/60, s%60)})
	}
	out.Width = leftEdge + int(last.Seconds()*pixels) + 40
	slices.SortStableFunc(out.Events, func(a, b drawnEvent) int { return cmp.Compare(a.From, b.From) })
	return out
}

func (p page) write(f interface{ Write([]byte) (int, error) }) error {
	return pageTemplate.Execute(f, p)
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{.Title}}</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222 } h1 { margin: 0 } code, pre { background: #f3f3f3; padding: .1em .3em }
.ok { color: #176b2c } .bad { color: #b00020; font-weight: bold } .line { overflow-x: auto; border: 1px solid #ddd } table { border-collapse: collapse }
td, th { text-align: left; padding: .1em .8em .1em 0; vertical-align: top; border-bottom: 1px solid #eee } svg text { font-size: 11px; fill: #555 }
.faults { fill: #c0392b } .members { fill: #8e44ad } .recoveries { fill: #d68910 } .work { fill: #2e86c1 } .checks { fill: #229954 } .notes { fill: #7f8c8d }
</style>
<h1>{{.Title}}</h1>
<p class="{{if .Failed}}bad{{else}}ok{{end}}">{{if .Failed}}Something was broken.{{else}}Nothing was broken.{{end}}</p>
<p>Stale writes that the resource accepted: <b class="{{if .Stale}}bad{{else}}ok{{end}}">{{.Stale}}</b></p>
<p>{{.Summary}}.</p>
<p>Repeat it with <code>{{.Repeat}}</code>. Hosts: {{.Network}}.</p>
<h2>Checks</h2>
<table>{{range .Checks}}<tr><td class="{{if .Broken}}bad{{else}}ok{{end}}">{{if .Broken}}broken{{else}}held{{end}}</td><td>{{.What}}{{range .Broken}}<br><span class="bad">{{.}}</span>{{end}}</td></tr>
{{end}}</table>
<h2>Numbers</h2>
<ul>{{range .Counts}}<li>{{.}}</li>{{end}}</ul>
<h2>Time line</h2>
<p>Point at a bar to read what it is; all of them are listed below.</p>
<div class="line"><svg width="{{.Width}}" height="{{.Height}}" role="img" aria-label="time line">
{{$h := .Height}}{{range .Ticks}}<line x1="{{.X}}" x2="{{.X}}" y1="16" y2="{{$h}}" stroke="#eee"/><text x="{{.X}}" y="12">{{.Label}}</text>{{end}}
{{range .Lanes}}<text x="4" y="{{.Y}}">{{.Name}}</text>{{end}}
{{range .Events}}<rect class="{{.Lane}}" x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="10"><title>{{.At}}: {{.Text}}</title></rect>
{{end}}</svg></div>
<h2>Plan</h2>
<pre>{{.Plan}}</pre>
<h2>What happened</h2>
<table><tr><th>at</th><th></th><th></th></tr>
{{range .Events}}<tr><td>{{.At}}</td><td>{{.Lane}}</td><td>{{.Text}}</td></tr>
{{end}}</table>
</html>
`))

// The page holds everything that was noted, in its own words, and says how to repeat the run.
func TestThePageTellsEverything(t *testing.T) {
	t.Parallel()
	c := newChronicle()
	c.span(faults, time.Second, 5*time.Second, "kill n1")
	c.span(faults, 2*time.Second, 3*time.Second, "isolate <n2>")
	c.add(recoveries, "recovered by %s", "n3")
	c.counts("faults", 2)
	c.verdict("views", nil)
	c.verdict("holds", []string{"two of them"})
	var b strings.Builder
	p := c.page(draw(7, time.Minute), "", true)
	if err := p.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kill n1", "isolate &lt;n2&gt;", "recovered by n3", "faults: 2", "two of them", "held", "make chaos SEED=7 MINUTES=1", "Something was broken", "<svg"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(b.String(), "http") || strings.Contains(b.String(), "src=") {
		t.Error("the page needs a network")
	}
	if p.Events[0].Y == p.Events[1].Y && p.Events[0].Lane == p.Events[1].Lane {
		t.Error("what lasted at the same time is drawn over each other")
	}
}
