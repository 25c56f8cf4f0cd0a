package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// StandbySettings are what a primary must be started with so that it can have standbys.
func StandbySettings() map[string]string {
	return map[string]string{"wal_level": "replica", "max_wal_senders": "4"}
}

// NewStandby starts a streaming standby of primary for one test and stops it at the end of the test.
func NewStandby(t TB, primary *Server, o Options) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := startStandby(ctx, primary, o)
	if err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop the standby: %v", err)
		}
	})
	return s
}

// startStandby copies the primary by pg_basebackup.
func startStandby(ctx context.Context, primary *Server, o Options) (*Server, error) {
	bin := o.BinDir
	if bin == "" {
		var err error
		if bin, err = BinDir(); err != nil {
			return nil, err
		}
	}
	who, err := serverAccount(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := makeDir("", tempDir(o.Durable), who)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "pg_basebackup"), "--pgdata="+filepath.Join(dir, "data"), "--write-recovery-conf",
		"--wal-method=stream", "--checkpoint=fast", "--no-sync", "--no-password",
		"--host=127.0.0.1", "--port="+strconv.Itoa(primary.Port), "--username="+Superuser)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PGPASSWORD="+primary.Password)
	who.as(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("copy the primary: %w: %s", err, bytes.TrimSpace(out)), os.RemoveAll(dir))
	}
	o.Password = primary.Password
	settings := StandbySettings()
	for name, value := range o.Settings {
		settings[name] = value
	}
	o.Settings = settings
	s, err := run(ctx, bin, dir, o, who)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}
