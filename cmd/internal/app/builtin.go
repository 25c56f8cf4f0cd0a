package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/processor/age"
	"github.com/fencepost/fencepost/pipeline/processor/gzip"
	"github.com/fencepost/fencepost/pipeline/processor/zstd"
	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/source"
	"github.com/fencepost/fencepost/pipeline/source/postgres"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/dropbox"
	"github.com/fencepost/fencepost/pipeline/storage/local"
	"github.com/fencepost/fencepost/pipeline/storage/mem"
	"github.com/fencepost/fencepost/pipeline/storage/s3"
)

// This file alone links implementations: a new kind is one line in a switch here.

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
		src, err := openSource(d, log)
		if err != nil {
			return o, fmt.Errorf("databases[%d] %s: %w", i, d.Name, err)
		}
		if d.Scratch {
			o.scratch[d.Name] = src
			continue
		}
		o.sources[d.Name] = src
	}
	accounts := accounts{}
	for i, s := range c.Storages {
		st, closer, err := openStorage(s, accounts, log)
		if err != nil {
			return o, fmt.Errorf("storages[%d] %s: %w", i, s.Name, err)
		}
		o.storages[s.Name] = st
		o.close = append(o.close, closer)
	}
	for i, p := range c.Processors {
		made, err := openProcessor(p)
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

func openSource(d configs.Database, log *slog.Logger) (source.Source, error) {
	dsn, err := d.DSN.Resolve()
	if err != nil {
		return nil, err
	}
	return postgres.New(postgres.Config{DSN: dsn, Yield: postgres.Yield(d.Yield), Jobs: d.Jobs, Logger: log.With("database", d.Name)})
}

func openStorage(s configs.Storage, all accounts, log *slog.Logger) (storage.Storage, func() error, error) {
	switch s.Kind {
	case "local":
		st, err := local.Open(local.Options{Root: s.Path, MinFree: int64(s.MinFree), Log: log})
		if err != nil {
			return nil, nil, err
		}
		return st, st.Close, nil
	case "mem":
		return mem.New(), func() error { return nil }, nil
	case "s3":
		st, err := openBucket(s, log)
		if err != nil {
			return nil, nil, err
		}
		return st, st.Close, nil
	case "dropbox":
		account, err := all.open(s, log)
		if err != nil {
			return nil, nil, err
		}
		st, err := dropbox.Open(dropbox.Options{Account: account, Folder: s.Folder, PartSize: int64(s.PartSize)})
		if err != nil {
			return nil, nil, err
		}
		return st, account.Close, nil
	}
	return nil, nil, fmt.Errorf("kind %q is unknown", s.Kind)
}

// accounts are the Dropbox accounts that were opened: storages in one share it, because the service limits by account.
type accounts map[[3]string]*dropbox.Account

func (all accounts) open(s configs.Storage, log *slog.Logger) (*dropbox.Account, error) {
	token, err := s.RefreshToken.Resolve()
	if err != nil {
		return nil, fmt.Errorf("refresh_token: %w", err)
	}
	key := [3]string{s.Endpoint, s.AppKey, token}
	if all[key] == nil {
		all[key], err = dropbox.NewAccount(dropbox.AccountOptions{
			AppKey: s.AppKey, RefreshToken: secret.New(token), Endpoint: s.Endpoint, Log: log.With("storage", s.Name),
		})
	}
	return all[key], err
}

func openBucket(s configs.Storage, log *slog.Logger) (*s3.Storage, error) {
	id, err := s.AccessKey.Resolve()
	if err != nil {
		return nil, fmt.Errorf("access_key: %w", err)
	}
	key, err := s.SecretKey.Resolve()
	if err != nil {
		return nil, fmt.Errorf("secret_key: %w", err)
	}
	return s3.Open(s3.Options{
		Endpoint: s.Endpoint, Region: s.Region, Bucket: s.Bucket, Prefix: s.Prefix, AccessKey: id, SecretKey: secret.New(key),
		PathStyle: s.PathStyle, PartSize: int64(s.PartSize), Lock: s3.Lock{Mode: s.Lock.Mode, Days: s.Lock.Days},
		Log: log.With("storage", s.Name),
	})
}

func openProcessor(p configs.Processor) (processor.Processor, error) {
	switch p.Kind {
	case "zstd":
		z, err := zstd.New(zstd.Options{Level: p.Level})
		return placed{z, p.Precedence}, err
	case "gzip":
		g, err := gzip.New(gzip.Options{Level: p.Level})
		return placed{g, p.Precedence}, err
	case "age":
		keys, err := age.Load(age.Files{
			Recipients: p.Recipients, RecipientsFile: p.RecipientsFile, Identity: p.IdentityFile, Passphrase: p.PassphraseFile,
		})
		return placed{age.New(age.Options{Keys: keys}), p.Precedence}, err
	}
	return nil, fmt.Errorf("kind %q is unknown", p.Kind)
}

// placed is a processor at the place in the chain that the configuration gives it.
type placed struct {
	processor.Processor
	precedence int
}

func (p placed) Precedence() int { return p.precedence }

// known adds the processors that may be met in manifests but are not configured for new backups. One without keys is
// known too: it says that it lacks them, which is more than that nobody knows it.
func (o opened) known() []processor.Processor {
	all := slices.Concat(o.processors, o.readers)
	for _, b := range []processor.Processor{zstd.Default(), gzip.Default(), age.New(age.Options{})} {
		if !slices.ContainsFunc(all, func(p processor.Processor) bool { return p.Name() == b.Name() }) {
			all = append(all, b)
		}
	}
	return all
}

// catalog is what the pipeline works with: storages guarded by their owner.
func (o opened) catalog(cluster string) (pipeline.Catalog, error) {
	cat := pipeline.Catalog{Sources: o.sources, Scratch: o.scratch, Storages: make(map[string]storage.Storage)}
	for name, s := range o.storages {
		cat.Storages[name] = storage.Owned(storage.Retry(s, storage.RetryOptions{}), cluster)
	}
	for _, p := range o.processors {
		cat.Chain = append(cat.Chain, p.Name())
	}
	registry, err := processor.NewRegistry(o.known()...)
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
