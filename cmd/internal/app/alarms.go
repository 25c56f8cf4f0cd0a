package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/gms"
)

// alarmsComponent keeps in the state cache what only one node can see of itself: alarms of member <node>, bound to its run,
// so that every node shows them and one of them tells of them.
const alarmsComponent = "alarms"

const (
	tellAlarmsEvery = 5 * time.Second
	retellEvery     = time.Minute // when only the words of the same alarms have changed
	maxAlarms       = 50          // of one node
	maxAlarmText    = 300         // bytes of each text in it
)

func alarmsKey(node string) gms.Key {
	return gms.Key{Component: alarmsComponent, Member: node, Key: "local"}
}

// tellAlarms keeps what the others know of this node's own alarms up to date, and, where this node acts for the group, since when backups are
// expected. It ends with ctx.
func (a *App) tellAlarms(ctx context.Context) {
	ticker := time.NewTicker(tellAlarmsEvery)
	defer ticker.Stop()
	var told time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if standing, _ := a.group.Standing(); standing != gms.Held {
			continue
		}
		switch wrote, err := a.publishAlarms(ctx, time.Since(told) >= retellEvery); {
		case wrote:
			told = time.Now()
		case err != nil && ctx.Err() == nil:
			a.log.Debug("app: own alarms were not told to the others; it is tried again", "error", err)
		}
		if !a.speaks() || !a.clock.Settled() {
			continue
		}
		if err := a.expectFrom(ctx); err != nil && ctx.Err() == nil {
			a.log.Debug("app: not noted since when backups are expected; it is tried again", "error", err)
		}
	}
}

// publishAlarms writes this node's own alarms when there are others than are written, or with anew when they only read
// differently.
func (a *App) publishAlarms(ctx context.Context, anew bool) (wrote bool, err error) {
	own := localAlarms(a.seen.Get(ctx))
	key := alarmsKey(a.cfg.Node)
	mine := putOf(key, own)
	mine.Bound = true
	e, err := a.group.Cache().GetLocal(key)
	if err != nil && !errors.Is(err, gms.ErrNotFound) {
		return false, err
	}
	var written []api.Alarm
	if json.Unmarshal(e.Value, &written) == nil || len(own) == 0 {
		if same := slices.EqualFunc(own, written, sameAlarm); same && !anew || bytes.Equal(e.Value, mine.Value) || same && len(own) == 0 {
			return false, nil
		}
	}
	_, err = a.group.Cache().Commit(ctx, gms.Txn{Puts: []gms.Put{mine}})
	return err == nil, err
}

func sameAlarm(a, b api.Alarm) bool { return a.Key() == b.Key() && a.Severity == b.Severity }

// localAlarms are those of o that only the node itself can see, cut to a size that the group can carry.
func localAlarms(o api.Overview) []api.Alarm {
	list := []api.Alarm{}
	for _, x := range o.Alarms {
		if !x.Local || x.From != "" {
			continue
		}
		x.Text, x.Hint, x.Cause = cutText(x.Text), cutText(x.Hint), cutText(x.Cause)
		if list = append(list, x); len(list) == maxAlarms {
			break
		}
	}
	return list
}

func cutText(s string) string {
	if len(s) <= maxAlarmText {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:maxAlarmText]), nil)) + "..."
}

// othersAlarms are what the other members of the view have told of themselves.
func (a *App) othersAlarms() (list []api.Alarm) {
	for _, m := range a.group.View().Members {
		if m.Node == a.cfg.Node {
			continue
		}
		e, err := a.group.Cache().GetLocal(alarmsKey(m.Node))
		if err != nil {
			continue // it has none
		}
		var told []api.Alarm
		if json.Unmarshal(e.Value, &told) != nil {
			continue // of a version that says more than this one understands
		}
		for _, x := range told {
			x.From = m.Node
			list = append(list, x)
		}
	}
	return list
}

func isConflict(err error) bool { return errors.Is(err, gms.ErrConflict) }
