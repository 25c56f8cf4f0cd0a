package gms

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// homeDir is a node's local directory: who the node is, and where its log lies.
//
//	home/lock        held while a process stands on the home
//	home/node.key    ed25519 seed, 0600; its fingerprint is the home's id
//	home/gossip.keys the gossip keys since they were changed, 0600; see keyKeeper
//	home/group.json  cluster id and last known peers, rewritten by rename
//	home/raft/       log and snapshots: the durable memory of votes, never swept
type homeDir struct {
	dir  string
	key  ed25519.PrivateKey
	id   [16]byte
	lock *os.File
}

// groupFile is what a home remembers of its group.
type groupFile struct {
	Version   int               `json:"version"`
	Group     string            `json:"group"`
	ClusterID string            `json:"cluster_id"` // hex; empty while unformed
	Peers     map[string]string `json:"peers"`      // node → gossip address, of the last view
	Cluster   map[string]string `json:"cluster"`    // node → cluster address, likewise
	Fed       bool              `json:"fed"`        // the home holds no log: other members feed its node
}

const groupFileVersion = 1

// lockWait is how long a home that is in use is waited for. A run that was killed has its lock until the last process has
// ended that was made of it, and a child that is being started has it until it runs a program of its own: who starts a node
// again at once may come before that.
const (
	lockWait  = 3 * time.Second
	lockPause = 20 * time.Millisecond
)

func awaitLock(path string) (*os.File, error) {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockPause) {
		f, err := lockFile(path)
		if !errors.Is(err, ErrHomeInUse) || !time.Now().Before(end) {
			return f, err
		}
	}
}

func openHome(dir, group string) (*homeDir, groupFile, error) {
	fail := func(err error) (*homeDir, groupFile, error) {
		return nil, groupFile{}, fmt.Errorf("open home %s: %w", dir, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "raft"), 0o700); err != nil {
		return fail(err)
	}
	lock, err := awaitLock(filepath.Join(dir, "lock"))
	if err != nil {
		return fail(err)
	}
	h := &homeDir{dir: dir, lock: lock}
	gf, err := h.read(group)
	if err != nil {
		return fail(errors.Join(err, lock.Close()))
	}
	return h, gf, nil
}

func (h *homeDir) read(group string) (groupFile, error) {
	gf := groupFile{Version: groupFileVersion, Group: group}
	data, err := os.ReadFile(h.path("group.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return gf, err
	default:
		if err := json.Unmarshal(data, &gf); err != nil {
			return gf, fmt.Errorf("read group.json: %w", err)
		}
	}
	if gf.Version > groupFileVersion {
		return gf, fmt.Errorf("group.json has format %d, this build reads up to %d: use a newer build", gf.Version, groupFileVersion)
	}
	if gf.Group != group {
		return gf, withHint(fmt.Errorf("%w: it is a home of group %q, not %q", ErrOtherGroup, gf.Group, group), "set group to "+gf.Group+", or use another home")
	}
	return gf, h.loadKey()
}

// loadKey reads the node key, or makes it in an empty home. A home that has a log but no key has lost its identity.
func (h *homeDir) loadKey() error {
	seed, err := os.ReadFile(h.path("node.key"))
	if errors.Is(err, fs.ErrNotExist) {
		if entries, err := os.ReadDir(h.raftDir()); err != nil || len(entries) > 0 {
			return errors.Join(errors.New("node.key is missing beside a Raft log: restore it, or empty the home and run `fencepost node replace`"), err)
		}
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			return err
		}
		seed = key.Seed()
		if err := writeFile(h.path("node.key"), seed); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if len(seed) != ed25519.SeedSize {
		return fmt.Errorf("node.key has %d bytes instead of %d", len(seed), ed25519.SeedSize)
	}
	h.key = ed25519.NewKeyFromSeed(seed)
	sum := sha256.Sum256(h.publicKey())
	copy(h.id[:], sum[:])
	return nil
}

func (h *homeDir) publicKey() ed25519.PublicKey { return h.key.Public().(ed25519.PublicKey) }
func (h *homeDir) path(name string) string      { return filepath.Join(h.dir, name) }
func (h *homeDir) raftDir() string              { return h.path("raft") }
func (h *homeDir) idHex() string                { return hex.EncodeToString(h.id[:]) }

func (h *homeDir) remember(gf groupFile) error {
	data, err := json.MarshalIndent(gf, "", "\t")
	if err != nil {
		return err
	}
	if err := writeFile(h.path("group.json"), data); err != nil {
		return fmt.Errorf("write group.json: %w", err)
	}
	return nil
}

func (h *homeDir) close() error { return h.lock.Close() }

// lockFile takes the lock of a home, which ends with the process that has it, however that ends. Errors: ErrHomeInUse; that
// this system has no such lock.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	held, err := tryLock(f)
	if held {
		err = withHint(fmt.Errorf("%w by another process", ErrHomeInUse), "stop the node that runs there, or give this one a home of its own")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// writeFile replaces a file so that after a crash it is either the old or the new one.
func writeFile(path string, data []byte) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
