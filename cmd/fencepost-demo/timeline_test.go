package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// script is the log of a recovery, one line per entry: milliseconds after the kill, the node, the attributes.
const script = `
6 n1 {"msg":"gms: closing run","node":"n2","run":"r2","why":"its host refuses"}
9 n3 {"msg":"gms: run closed","node":"n2","run":"r2","evidence":"refused","position":77}
8 n1 {"msg":"gms: run closed","node":"n2","run":"r2","evidence":"refused","position":77}
8 n1 {"msg":"gms: appointed","recovers":"restore","node":"n2","run":"r2","appointee":"n1"}
8 n1 {"msg":"gms: appointed","recovers":"backup","node":"n2","run":"r2","appointee":"n3"}
11 n3 {"msg":"gms: fence raised","recovers":"backup","run":"r2","appointee":"n3","token":501}
13 n3 {"msg":"components: claim adopted","component":"backup","item":"t1","token":502,"fence":501}
20 n3 {"msg":"task settled","task":"t1","was":"uploading","is":"planned"}
22 n3 {"msg":"gms: recovery ended","recovers":"backup","run":"r2"}
23 n3 {"msg":"attempt begins","task":"t1","attempt":2}
90 n1 {"msg":"gms: run opened","node":"n2","run":"r9"}
99 n2 {"msg":"app: ready","waited":"7ms"}
12000 n3 {"msg":"task completed","task":"t1"}
`

func played(t *testing.T, text string) ([]entry, kill) {
	t.Helper()
	k := kill{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), node: "n2", run: "r2", task: "t1", attempt: 1, token: 400}
	var log []entry
	for line := range strings.Lines(strings.TrimSpace(text)) {
		var ms int
		var by string
		if _, err := fmt.Sscan(line, &ms, &by); err != nil {
			t.Fatal(err)
		}
		found := parseLog(by, []byte(line[strings.Index(line, "{"):]))
		if len(found) != 1 {
			t.Fatalf("not an entry: %s", line)
		}
		found[0].Time = k.at.Add(time.Duration(ms) * time.Millisecond)
		log = append(log, found...)
	}
	return log, k
}

func TestTimeline(t *testing.T) {
	log, k := played(t, script)
	rows, err := timeline(log, append(recoveryScenes(k, log), backupScenes(k)...))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&got, "%d %s %s\n", r.at.Sub(k.at).Milliseconds(), r.node, r.text)
	}
	const want = `6 n1 death noticed: its host refuses
8 n1 view 77 without n2, evidence: refused; seen by n1 +8.0, n3 +9.0 ms
8 n1 n3 is appointed to recover the work of n2
11 n3 fence raised by n3, token 501
22 n3 fence lowered
13 n3 orphan adopted: task t1, token 502
20 n3 attempt 1 reverted: the task was uploading and is planned again
23 n3 attempt 2 begins
90 n1 n2 is back in the view, as a new run
99 n2 ready, having waited 7ms at the fence
12000 n3 attempt 2 completed
`
	if got.String() != want {
		t.Errorf("the time line is\n%s\nwant\n%s", got.String(), want)
	}
}

// TestTimelineMisses: each scene that did not happen is named; another component's, task's or run's is not taken for it.
func TestTimelineMisses(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(script), "\n")
	for _, x := range []struct{ without, replaced, by, want string }{
		{"fence raised", `"run":"r2"`, `"run":"r8"`, "a raised fence"},
		{"claim adopted", "t1", "t2", "an adopted orphan"},
		{"recovery ended", "backup", "restore", "a lowered fence"},
		{"attempt begins", `"attempt":2`, `"attempt":1`, "another attempt"},
		{"run opened", "r9", "r2", "the new run of n2"},
		{"closing run", "closing", "opening", "the notice of the death"},
	} {
		var changed []string
		for _, line := range lines {
			if strings.Contains(line, x.without) {
				line = strings.Replace(line, x.replaced, x.by, 1)
			}
			changed = append(changed, line)
		}
		log, k := played(t, strings.Join(changed, "\n"))
		if _, err := timeline(log, append(recoveryScenes(k, log), backupScenes(k)...)); err == nil || !strings.HasSuffix(err.Error(), ": "+x.want) {
			t.Errorf("%s: error %v, want one with %q", x.without, err, x.want)
		}
	}
}

// TestTimelineOfANewerRun: a node that was back before anybody could prove its death needs no notice.
func TestTimelineOfANewerRun(t *testing.T) {
	text := strings.ReplaceAll(strings.Replace(script, "closing", "opening", 1), `"evidence":"refused"`, `"evidence":"newer run"`)
	log, k := played(t, text)
	if rows, err := timeline(log, append(recoveryScenes(k, log), backupScenes(k)...)); err != nil || !strings.Contains(rows[0].text, "evidence: newer run") {
		t.Errorf("rows %v, error %v", rows, err)
	}
}

func TestParseLogSkipsWhatIsNoEntry(t *testing.T) {
	got := parseLog("n1", []byte("{\"msg\":\"a\"}\npanic: oh\n\n{\"msg\":\"b\"}\n{\"msg\":\"cut"))
	if len(got) != 2 || got[0].Msg != "a" || got[1].Msg != "b" || got[1].by != "n1" {
		t.Errorf("got %+v", got)
	}
}

func TestSince(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "     0.0 ms", 1234567 * time.Nanosecond: "     1.2 ms", 9*time.Second + 999*time.Millisecond: "  9999.0 ms", 25340 * time.Millisecond: "    25.3 s ",
	} {
		if got := since(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
