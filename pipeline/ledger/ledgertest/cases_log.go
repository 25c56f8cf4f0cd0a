package ledgertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// logsAreKept: lines come in order, also after the end, once each, within their bounds, from nobody but the holder.
func logsAreKept(b *bench) {
	if _, err := b.led.Log(b.ctx, "t1"); err == nil {
		b.Fatal("there is a log of a task that there is not")
	}
	b.plan("t1")
	g, row := b.take("t1", "aa")
	if l, err := b.led.Log(b.ctx, "t1"); err != nil || len(l.Lines) != 0 {
		b.Fatalf("before anything was told: %+v, %v", l, err)
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.FixedZone("", 3600))
	line := func(text string) ledger.LogLine {
		return ledger.LogLine{At: at, Attempt: 1, Token: g.Token, Node: "node-aa", Level: ledger.LineInfo, Text: text}
	}
	b.must(b.led.AppendLog(b.ctx, g, []ledger.LogLine{line("one"), line("two\nlines, \x00 and \xff")}), "append two")
	b.must(b.led.AppendLog(b.ctx, g, []ledger.LogLine{line("one"), line("three")}), "append, one of them again")
	b.must(b.write(g, row, ledger.Completed), "complete")
	b.must(b.led.AppendLog(b.ctx, g, []ledger.LogLine{line("after the end")}), "append after the end")
	if got, want := b.told("t1"), []string{"one", "two lines,   and \uFFFD", "three", "after the end"}; !slices.Equal(got, want) {
		b.Errorf("told: %q, want %q", got, want)
	}
	l, err := b.led.Log(b.ctx, "t1")
	b.must(err, "read the log")
	if want := at.UTC().Round(time.Microsecond); !l.Lines[0].At.Equal(want) || l.Lines[0].Node != "node-aa" || l.Lines[0].Token != g.Token {
		b.Errorf("first line: %+v", l.Lines[0])
	}

	late := g
	late.Token--
	b.want(b.led.AppendLog(b.ctx, late, []ledger.LogLine{line("late")}), ledger.ErrFenced, "append under an earlier token")
	var many []ledger.LogLine
	for i := range ledger.MaxLines {
		many = append(many, line(fmt.Sprint(i)))
	}
	b.must(b.led.AppendLog(b.ctx, g, many), "append many")
	b.must(b.led.AppendLog(b.ctx, g, []ledger.LogLine{line(strings.Repeat("<", 10*ledger.MaxLine))}), "append a long one")
	l, err = b.led.Log(b.ctx, "t1")
	b.must(err, "read the log")
	newest := l.Lines[len(l.Lines)-1]
	if len(l.Lines) > ledger.MaxLines || l.Dropped+len(l.Lines) != 5+ledger.MaxLines || len(newest.Text) > ledger.MaxLine || newest.Text[0] != '<' {
		b.Errorf("%d lines and %d dropped, the last of %d bytes", len(l.Lines), l.Dropped, len(newest.Text))
	}
}

func (b *bench) told(id string) (lines []string) {
	b.Helper()
	l, err := b.led.Log(b.ctx, id)
	b.must(err, "read the log of "+id)
	for _, line := range l.Lines {
		lines = append(lines, line.Text)
	}
	return lines
}

// logsOfTheShutOut: who is shut out tells nothing any more; its successor goes on.
func logsOfTheShutOut(b *bench) {
	b.plan("t1")
	dead, _ := b.take("t1", "aa")
	line := func(text string) []ledger.LogLine {
		return []ledger.LogLine{{At: time.Unix(1_900_000_000, 0), Attempt: 1, Node: "n", Level: ledger.LineWarn, Text: text}}
	}
	b.must(b.led.AppendLog(b.ctx, dead, line("begun")), "append")
	heir := b.recoverer("t1", "aa", "bb")
	b.want(b.led.AppendLog(b.ctx, dead, line("late")), ledger.ErrFenced, "append when shut out")
	_, err := b.led.Take(b.ctx, heir, "t1", "node-bb")
	b.must(err, "take over")
	b.must(b.led.AppendLog(b.ctx, heir, line("taken over")), "append under the fence")
	if got, want := b.told("t1"), []string{"begun", "taken over"}; !slices.Equal(got, want) {
		b.Errorf("told: %q, want %q", got, want)
	}
}

// begunIsTheLedgersWord: the ledger says when an attempt began; what is planned again has not.
func begunIsTheLedgersWord(b *bench) {
	if t := b.plan("t1"); !t.Begun.IsZero() {
		b.Errorf("planned, begun at %v", t.Begun)
	}
	g, row := b.take("t1", "aa")
	row.Begun = time.Unix(1, 0)
	b.must(b.write(g, row, ledger.Creating), "begin")
	first := b.task("t1")
	if first.Begun.IsZero() || !first.Begun.Equal(first.Updated) {
		b.Errorf("begun at %v, written at %v", first.Begun, first.Updated)
	}
	b.must(b.write(g, first, ledger.Uploading), "go on")
	if t := b.task("t1"); !t.Begun.Equal(first.Begun) {
		b.Errorf("begun at %v, and then at %v", first.Begun, t.Begun)
	}
	b.must(b.write(g, b.task("t1"), ledger.Planned), "plan again")
	if t := b.task("t1"); !t.Begun.IsZero() {
		b.Errorf("planned again, begun at %v", t.Begun)
	}
}
