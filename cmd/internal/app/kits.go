package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/pipeline/processor"
)

// kitKey is where it is kept what the newest kit leads to.
const kitKey = "kit/newest"

// NoteKit implements admin.GroupStates.
func (s states) NoteKit(ctx context.Context, k api.Kit) (api.Kit, error) {
	k.Made, k.By = optional(s.a.clock.Now().UTC()), jobs(s).asker(ctx)
	if k.Places == nil {
		k.Places = map[string]string{}
	}
	k.Signers = append([]string{}, k.Signers...)
	return k, kept.Update(ctx, groupStore(s), kitKey, func(r kept.Record) ([]kept.Change, error) {
		return []kept.Change{kept.Put(kitKey, k, r.Version)}, nil
	})
}

// newestKit is what this node knows of it; nil when none was made since the group knows of kits.
func (a *App) newestKit() *api.Kit {
	var k api.Kit
	if r := (groupStore{a}).Local(kitKey); r.Version == 0 || json.Unmarshal(r.Value, &k) != nil || k.Made == nil {
		return nil
	}
	return &k
}

// kitAlarm says what the newest kit does not lead to, as this node sees it; none where none was made.
func (a *App) kitAlarm() []api.Alarm {
	k := a.newestKit()
	if k == nil {
		return nil
	}
	fit := a.outfitNow()
	places := map[string]string{}
	for _, s := range fit.cfg.Storages {
		if s.Kind != "mem" {
			places[s.Name] = offline.StorageMark(s)
		}
	}
	id := ""
	if chain, err := fit.catalog.Processors.Chain(fit.catalog.Chain); err == nil {
		id = processor.KitID(chain)
	}
	signers := map[string]string{}
	for _, x := range a.enteredState().Signers {
		if x.Cluster == a.group.ClusterID() {
			signers[x.Key] = x.Node
		}
	}
	lacks := kitLacks(*k, places, id, signers)
	if len(lacks) == 0 {
		return nil
	}
	alarm := api.Alarm{Kind: "kit", About: a.cfg.Node, Severity: api.Warning, Local: true,
		Text: fmt.Sprintf("the newest kit, of %s, is out of date: %s", k.Made.UTC().Format(time.DateOnly), strings.Join(lacks, "; ")),
		Hint: "fencepost kit make FILE --config FILE, where the identity_file is"}
	return []api.Alarm{alarm}
}

// kitLacks says what a kit does not lead to, of storages by the marks of their places, of the keys with an id, and of nodes by
// their keys. Pure.
func kitLacks(k api.Kit, places map[string]string, id string, signers map[string]string) (lacks []string) {
	for _, name := range slices.Sorted(maps.Keys(places)) {
		switch mark, there := k.Places[name]; {
		case !there:
			lacks = append(lacks, "storage "+name+" is newer")
		case mark != places[name]:
			lacks = append(lacks, "storage "+name+" is in another place now")
		}
	}
	if id != "" && id != k.ID {
		lacks = append(lacks, "backups take the keys of kit "+id+" now")
	}
	var newer []string
	for key, node := range signers {
		if !slices.Contains(k.Signers, key) {
			newer = append(newer, node)
		}
	}
	slices.Sort(newer)
	for _, node := range slices.Compact(newer) {
		lacks = append(lacks, "node "+node+" is newer, and its backups are not believed")
	}
	return lacks
}
