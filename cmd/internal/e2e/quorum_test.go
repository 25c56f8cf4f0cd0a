package e2e

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lostQuorum is what `fencepostd recover -o json` shows.
type lostQuorum struct {
	Node   string `json:"node"`
	Index  uint64 `json:"index"`
	Token  uint64 `json:"token"`
	Claims int    `json:"claims"`
	Alone  bool   `json:"alone"`
	Others []struct {
		Node  string `json:"node"`
		Voter bool   `json:"voter"`
		Run   string `json:"run"`
	} `json:"others"`
}

// TestQuorumLostForGood: two of three homes are destroyed while one of them makes a backup. The survivor is made to go on
// alone, which is refused unless exactly the others are named, none of them answers, and nobody runs on the home. Then the
// backup that the dead had begun is made, with tokens above all that were ever given; a burnt home that comes back is refused
// until it is reset, and then is a member like any other.
func TestQuorumLostForGood(t *testing.T) {
	t.Parallel()
	dsn := database(t, bulk("goods", 5))
	c := newCluster(t, options{nodes: 3, dsns: map[string]string{"shop": dsn}, extra: slowly})
	c.up()
	task := c.backup("n1")
	first := c.reaches("n1", task.ID, "uploading", sent)
	owner := first.Node
	survivor := c.survivor(owner)
	third := c.survivor(owner, survivor)
	inUse := run(t, daemon, "recover", "--home", c.home(survivor))
	inUse.complains(t, 3, "home is in use")
	run(t, daemon, "home", "reset", "--home", c.home(survivor)).complains(t, 3, "home is in use")
	for _, n := range []string{owner, third, survivor} { // the last one has no quorum any more
		c.kill(n)
	}
	burnt := c.copyHome(owner)
	for _, n := range []string{owner, third} {
		if err := os.RemoveAll(c.home(n)); err != nil {
			t.Fatal(err)
		}
	}

	held := c.holds("--home", c.home(survivor))
	if held.Node != survivor || held.Alone || len(held.Others) != 2 || held.Claims == 0 || !held.Others[0].Voter || !held.Others[1].Voter {
		t.Fatalf("the survivor holds %+v", held)
	}
	c.refusesToRecover(survivor, owner, third)
	if now := c.holds("--home", c.home(survivor)); now.Index != held.Index || now.Alone {
		t.Fatalf("a refused recover has changed the home from %+v to %+v", held, now)
	}
	high := c.highest()
	page := rehearsal{c: c, words: map[string]string{"n1": survivor, "n2": owner, "n3": third}}
	page.before = map[string]func(){"systemctl start fencepostd": func() {
		if now := c.holds("--home", c.home(survivor)); !now.Alone || now.Token <= held.Token || now.Token <= high {
			t.Errorf("recovered: %+v; before %+v, and storages had seen %d", now, held, high)
		}
	}}
	page.follow("quorum-lost")
	done := c.finishes(survivor, task.ID)
	if done.Attempt != 2 || done.Token <= high || done.Token <= first.Token {
		t.Errorf("completed by attempt %d with token %d; the first had %d, storages had seen %d", done.Attempt, done.Token, first.Token, high)
	}
	c.recovered(survivor)
	if b := c.oneBackup(survivor); b.Token != done.Token {
		t.Errorf("the backup counts token %d, the task ended with %d", b.Token, done.Token)
	}

	if err := os.Rename(burnt, c.home(owner)); err != nil {
		t.Fatal(err)
	}
	run(t, daemon, "--config", c.file(owner), "--no-warden").complains(t, 1, "given this home up", "home reset")
	if s := run(t, daemon, "home", "reset", "--config", c.file(owner)); s.code != 0 || !strings.Contains(s.out, "is empty") {
		t.Fatalf("reset: %d\n%s%s", s.code, s.out, s.err)
	}
	run(t, daemon, "home", "reset", "--config", c.file(owner)).complains(t, 2, "not found")
	c.start(owner, third)
	for _, n := range []string{owner, third} {
		c.ready(n)
	}
	c.until("three vote again", func() bool {
		v, err := c.client(survivor).View(c.ctx)
		voters := 0
		for _, m := range v.Members {
			if m.Voter {
				voters++
			}
		}
		return err == nil && voters == 3
	})
	if last := c.finishes(third, c.backup(third).ID); last.Token <= done.Token {
		t.Errorf("token %d after %d", last.Token, done.Token)
	}
}

// refusesToRecover: nobody but the dead is given up.
func (c *cluster) refusesToRecover(survivor string, dead ...string) {
	t := c.t.(*testing.T)
	t.Helper()
	home := c.home(survivor)
	both := strings.Join(dead, ",")
	for _, x := range []struct {
		args  []string
		code  int
		words []string
	}{
		{[]string{"--home", home, "--dead", dead[0]}, 1, []string{"not named as dead: " + dead[1]}},
		{[]string{"--home", home, "--dead", both + ",n9"}, 1, []string{`no node "n9"`}},
		{[]string{"--home", home, "--dead", both + "," + survivor}, 1, []string{survivor + " is the node of this home"}},
		{[]string{"--home", home, "--dead", both, "--above", "9007199254740991"}, 2, []string{"too large", "highest base"}},
		{[]string{"--home", filepath.Join(c.dir, "nowhere")}, 2, []string{"no home"}},
		{[]string{"--home", home, "-o", "yaml"}, 2, []string{"text or json"}},
		{[]string{"--home", home, both}, 2, []string{"unexpected argument"}},
		{nil, 2, []string{"--home or --config"}},
	} {
		s := run(t, daemon, append([]string{"recover"}, x.args...)...)
		if s.code != x.code {
			t.Errorf("recover %v: exit code %d, want %d\n%s", x.args, s.code, x.code, s.err)
		}
		for _, w := range x.words {
			if !strings.Contains(s.err, w) {
				t.Errorf("recover %v: %q is not in the error:\n%s", x.args, w, s.err)
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1"+portOf(c, dead[1]+"/cluster"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	run(t, daemon, "recover", "--home", home, "--dead", both).complains(t, 1, dead[1]+": the run answers at")
	if s := run(t, daemon, "home", "--home", home); s.code != 2 {
		t.Errorf("home without what to do: %d\n%s", s.code, s.err)
	}
}

func (c *cluster) home(name string) string { return filepath.Join(c.dir, name) }

// holds is what a home holds that no process uses.
func (c *cluster) holds(args ...string) (q lostQuorum) {
	t := c.t.(*testing.T)
	t.Helper()
	s := run(t, daemon, append([]string{"recover", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(s.out), &q); err != nil || s.code != 0 {
		t.Fatalf("recover %v: %d, %v\n%s%s", args, s.code, err, s.out, s.err)
	}
	return q
}

// highest is the highest number that a storage has seen.
func (c *cluster) highest() (high uint64) {
	c.t.Helper()
	for _, name := range []string{"a", "b"} {
		data, err := os.ReadFile(filepath.Join(c.dir, name, "_fencepost", "owner.json"))
		var owner struct {
			High uint64 `json:"high"`
		}
		if err == nil {
			err = json.Unmarshal(data, &owner)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		high = max(high, owner.High)
	}
	return high
}
