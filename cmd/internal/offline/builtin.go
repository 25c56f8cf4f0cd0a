package offline

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/fencepost/fencepost/configs"
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

// OpenSource opens a database of a configuration.
func OpenSource(d configs.Database, log *slog.Logger) (source.Source, error) {
	if d.Throwaway() {
		return postgres.NewThrowaway(postgres.ThrowawayConfig{Dir: d.Dir, Logger: log.With("database", d.Name)})
	}
	dsn, err := d.DSN.Resolve()
	if err != nil {
		return nil, err
	}
	return postgres.New(postgres.Config{
		DSN: dsn, Database: d.DBName, Yield: postgres.Yield(d.Yield), Standby: postgres.StandbyUse(d.Standby), Jobs: d.Jobs, Globals: postgres.GlobalsUse(d.Globals),
		Logger: log.With("database", d.Name),
	})
}

// OpenStorage opens a storage of a configuration, bare, and returns how it is closed. With readOnly nothing is written to a
// directory, not even to tidy it.
func OpenStorage(s configs.Storage, all Accounts, readOnly bool, log *slog.Logger) (storage.Storage, func() error, error) {
	switch s.Kind {
	case "local":
		st, err := local.Open(local.Options{Root: s.Path, MinFree: int64(s.MinFree), ReadOnly: readOnly, Log: log})
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

// Accounts are the Dropbox accounts that were opened: storages in one share it, because the service limits by account.
type Accounts map[[3]string]*dropbox.Account

func (all Accounts) open(s configs.Storage, log *slog.Logger) (*dropbox.Account, error) {
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

// OpenProcessor opens a processor of a configuration.
func OpenProcessor(p configs.Processor) (processor.Processor, error) {
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
		return placedKeyed{placed{age.New(age.Options{Keys: keys}), p.Precedence}}, err
	}
	return nil, fmt.Errorf("kind %q is unknown", p.Kind)
}

// placed is a processor at the place in the chain that the configuration gives it.
type placed struct {
	processor.Processor
	precedence int
}

func (p placed) Precedence() int { return p.precedence }

// placedKeyed is a placed one that has keys.
type placedKeyed struct{ placed }

// KitID implements processor.Keyed.
func (p placedKeyed) KitID() string { return processor.KitID([]processor.Processor{p.Processor}) }

// Opens implements processor.Keyed.
func (p placedKeyed) Opens() bool {
	k, ok := p.Processor.(processor.Keyed)
	return ok && k.Opens()
}

// Known adds to the configured processors those that may be met in manifests all the same. One without keys is known too:
// it says that it lacks them, which is more than that nobody knows it.
func Known(configured []processor.Processor) []processor.Processor {
	all := slices.Clone(configured)
	for _, b := range []processor.Processor{zstd.Default(), gzip.Default(), age.New(age.Options{})} {
		if !slices.ContainsFunc(all, func(p processor.Processor) bool { return p.Name() == b.Name() }) {
			all = append(all, b)
		}
	}
	return all
}
