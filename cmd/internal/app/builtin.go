package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/fencepost/fencepost/cmd/internal/offline"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// Implementations are linked in cmd/internal/offline, which opens them without a group too.

// opened is what the configuration names, opened; storages are bare, not yet checked for their owner.
type opened struct {
	sources    map[string]source.Source
	scratch    map[string]source.Source // servers that backups are restored into for a while
	storages   map[string]storage.Storage
	processors []processor.Processor // of new backups
	readers    []processor.Processor // of restores only, which win over the built-in ones
	close      []func() error
}

func openConfigured(c configs.Config, log *slog.Logger) (o opened, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, o.closeAll())
		}
	}()
	o = opened{sources: make(map[string]source.Source), scratch: make(map[string]source.Source), storages: make(map[string]storage.Storage)}
	for i, d := range c.Databases {
		src, err := offline.OpenSource(d, log)
		if err != nil {
			return o, fmt.Errorf("databases[%d] %s: %w", i, d.Name, err)
		}
		if d.Scratch {
			if left, ok := src.(interface{ Sweep(context.Context) }); ok {
				left.Sweep(context.Background()) // of an earlier process
			}
			o.scratch[d.Name] = src
			continue
		}
		o.sources[d.Name] = src
	}
	accounts := offline.Accounts{}
	for i, s := range c.Storages {
		st, closer, err := offline.OpenStorage(s, accounts, false, log)
		if err != nil {
			return o, fmt.Errorf("storages[%d] %s: %w", i, s.Name, err)
		}
		if s.AppendOnly {
			st = storage.AppendOnly(st, log.With("storage", s.Name))
		}
		o.storages[s.Name] = st
		o.close = append(o.close, closer)
	}
	for i, p := range c.Processors {
		made, err := offline.OpenProcessor(p)
		if err != nil {
			return o, fmt.Errorf("processors[%d] %s: %w", i, p.Kind, err)
		}
		if p.RestoreOnly {
			o.readers = append(o.readers, made)
			continue
		}
		o.processors = append(o.processors, made)
	}
	return o, nil
}

func (o opened) closeAll() error {
	var errs []error
	for _, c := range o.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// catalog is what the pipeline works with: storages guarded by their owner, and by their ids as far as these are known.
func (o opened) catalog(cluster string, ids map[string]string) (pipeline.Catalog, error) {
	cat := pipeline.Catalog{Sources: o.sources, Scratch: o.scratch, Storages: make(map[string]storage.Storage)}
	for name, s := range o.storages {
		cat.Storages[name] = storage.OwnedAs(storage.Retry(s, storage.RetryOptions{}), cluster, ids[name])
	}
	for _, p := range o.processors {
		cat.Chain = append(cat.Chain, p.Name())
	}
	registry, err := processor.NewRegistry(offline.Known(slices.Concat(o.processors, o.readers))...)
	cat.Processors = registry
	return cat, err
}

// highest is the highest number that any of the storages has seen, whoever owns them (gms.Config.Floor).
func (o opened) highest(ctx context.Context) (uint64, error) {
	var high uint64
	for name, s := range o.storages {
		owner, err := storage.CheckOwner(ctx, s, "")
		switch {
		case err == nil, errors.Is(err, storage.ErrForeign):
			high = max(high, owner.High)
		case errors.Is(err, storage.ErrNoOwner):
		default:
			return 0, fmt.Errorf("storage %s: %w", name, err)
		}
	}
	return high, nil
}
