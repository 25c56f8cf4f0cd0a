package app

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms"
	"github.com/fencepost/fencepost/recovery/home"
	"github.com/fencepost/fencepost/recovery/warden"
)

// TestWardenConfig: what the warden sweeps lies beside the node's key and log, and it waits longer than the
// node takes.
func TestWardenConfig(t *testing.T) {
	cfg := configs.Default()
	cfg.Node, cfg.Home = "n1", "/srv/fp"
	for profile, hang := range map[configs.Profile]time.Duration{configs.ProfileLAN: 2 * time.Minute, configs.ProfilePatient: 3 * time.Minute} {
		cfg.Profile = profile
		c, err := wardenConfig(cfg, "/etc/n1.yaml", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if c.Home.Dir != "/srv/fp/env" || !c.Sole || c.Node != "n1" {
			t.Errorf("%+v", c)
		}
		if c.Policy.HangAfter != hang {
			t.Errorf("profile %s: a node hangs after %v, want %v", profile, c.Policy.HangAfter, hang)
		}
		if least := cfg.Stop.Grace + afterGrace; c.Policy.StopFor <= least {
			t.Errorf("the warden waits %v for a node that may take %v", c.Policy.StopFor, least)
		}
		if args := strings.Join(c.Command.Args, " "); args != "--config /etc/n1.yaml --no-warden" {
			t.Errorf("the node is started with %q", args)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, err := range []error{home.ErrBusy, home.ErrNoRoom, home.ErrNetworkFS, home.ErrNeedsOperator, home.ErrNotProven, warden.ErrNeedsOperator} {
		if HintOf(explain(err, "/srv/fp"), "") == "" {
			t.Errorf("%v comes without a hint", err)
		}
	}
	if err := explain(home.ErrBusy, "/srv/fp"); !errors.Is(err, gms.ErrHomeInUse) || !strings.Contains(err.Error(), "/srv/fp") {
		t.Errorf("busy: %v", err)
	}
	other := errors.New("other")
	if explain(other, "") != other {
		t.Error("an error that needs no words got some")
	}
}

// TestSecondWardenIsRefused before it starts anything.
func TestSecondWardenIsRefused(t *testing.T) {
	c := config(t)
	k, err := home.Take(home.Config{Dir: filepath.Join(c.Home, envDir)})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var said bytes.Buffer
	if code := watchNode(c, "unused", slog.New(slog.DiscardHandler), &said); code != 1 {
		t.Errorf("code %d", code)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "home is in use") || !strings.HasPrefix(lines[1], "hint: ") {
		t.Errorf("said %q", said.String())
	}
}

// TestUnitFile holds what the service file must say for a warden, and that it waits as long as the warden does.
func TestUnitFile(t *testing.T) {
	text, err := os.ReadFile("../../../configs/fencepostd.service")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	value := func(key string) string {
		for _, l := range lines {
			if v, ok := strings.CutPrefix(l, key+"="); ok {
				return v
			}
		}
		t.Errorf("%s is missing", key)
		return ""
	}
	for key, want := range map[string]string{
		"KillMode": "mixed", "Type": "notify", "NotifyAccess": "main", "Restart": "on-failure", "RestartPreventExitStatus": "2 5 6",
	} {
		if got := value(key); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	stop, err := time.ParseDuration(strings.Replace(value("TimeoutStopSec"), "min", "m", 1))
	if err != nil || stop < configs.Default().Stop.Grace+afterGrace+killReserve {
		t.Errorf("TimeoutStopSec is %v, %v", stop, err)
	}
}
