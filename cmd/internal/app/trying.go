package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/ledger"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// triedWithin bounds a try of a storage.
const triedWithin = 90 * time.Second

// TryDatabase implements admin.Settings.
func (s groupSettings) TryDatabase(ctx context.Context, name string) (api.Tried, error) {
	all := s.a.outfitNow().cfg.Databases
	i := slices.IndexFunc(all, func(d configs.Database) bool { return d.Name == name })
	if i < 0 {
		return api.Tried{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("node %s knows no database %q", s.a.cfg.Node, name), Hint: "fencepost database ls shows those that it knows"}
	}
	e := offline.TryDatabase(ctx, all[i])
	return api.Tried{Name: name, Node: s.a.cfg.Node, Good: e.State == offline.ExamOK, Skipped: e.State == offline.ExamSkipped, Found: e.Found, Hint: e.Hint}, nil
}

// TryStorage implements admin.Storages. It is tried as it is used: through the guard, which refuses one that is not the group's.
func (j jobs) TryStorage(ctx context.Context, name string) (api.Tried, error) {
	fit := j.a.outfitNow()
	i := slices.IndexFunc(fit.cfg.Storages, func(s configs.Storage) bool { return s.Name == name })
	st := fit.catalog.Storages[name]
	if i < 0 || st == nil {
		return api.Tried{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("node %s has no storage %q open", j.a.cfg.Node, name), Hint: "fencepost status tells of storages that could not be opened"}
	}
	ctx, cancel := context.WithTimeout(ctx, triedWithin)
	defer cancel()
	out := api.Tried{Name: name, Node: j.a.cfg.Node, Good: true, Found: "it can be written, read and listed, and a second writer of one name is refused"}
	if err := lookAtStorages(ctx, map[string]storage.Storage{name: st})[name]; err != nil {
		out.Good, out.Found, out.Hint = false, err.Error(), HintOf(err, "")
		return out, nil
	}
	steps, left := storage.Probe(ctx, st, storage.ProbeOptions{Long: int64(fit.cfg.Storages[i].PartSize) + 1, AppendOnly: fit.cfg.Storages[i].AppendOnly})
	for _, s := range steps {
		step := api.TryStep{Step: s.Name, TookMS: s.Took.Milliseconds()}
		if s.Err != nil {
			step.Problem = s.Err.Error()
			out.Good, out.Found, out.Hint = false, s.Name+": "+s.Err.Error(), HintOf(s.Err, "")
		}
		out.Steps = append(out.Steps, step)
	}
	out.Left = left
	return out, nil
}

// Manifest implements admin.Backups.
func (j jobs) Manifest(ctx context.Context, id, name string) (api.Manifest, error) {
	w, err := j.now()
	if err != nil {
		return api.Manifest{}, err
	}
	b, err := w.ledger.Backup(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		err = noBackup(id)
	}
	if err != nil {
		return api.Manifest{}, err
	}
	for _, c := range b.Copies {
		if name == "" && c.State == ledger.CopyPresent {
			name = c.Storage
		}
	}
	out := api.Manifest{Backup: b.ID, Token: b.Token, Storage: name, Object: pipeline.ManifestPath(b.ID, b.Token)}
	st := j.a.outfitNow().catalog.Storages[name]
	if st == nil {
		return out, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("node %s reaches no storage %q that has a copy of backup %s", j.a.cfg.Node, name, id), Hint: "fencepost backup show " + id + " shows its copies"}
	}
	r, _, err := st.Get(ctx, out.Object)
	if errors.Is(err, storage.ErrNotFound) {
		return out, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("there is no %s in storage %s", out.Object, name), Hint: "fencepost storage check " + name + " compares it with the ledger"}
	}
	if err != nil {
		return out, fmt.Errorf("read the manifest in storage %s: %w", name, err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, pipeline.MaxManifest))
	if err != nil {
		return out, fmt.Errorf("read the manifest in storage %s: %w", name, err)
	}
	if out.Manifest = text; !json.Valid(text) {
		return out, fmt.Errorf("what lies at %s in storage %s is no manifest", out.Object, name)
	}
	return out, nil
}
