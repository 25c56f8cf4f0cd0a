package warden

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/recovery/home"
)

const (
	runVariable    = "FP_RUN"    // marks every process of a run; children inherit it
	wardenVariable = "FP_WARDEN" // what a node is told, as JSON
	nodeLabel      = "node"      // of the node's seat
	runFile        = "run"       // in the volatile part: what a warden must know to adopt
	standsFile     = "stands"    // in the volatile part: the run that the node stands as, when it is a later one
)

// run is one life of the node process under its warden.
type run struct {
	ID         [16]byte
	Generation uint64
	key        ed25519.PrivateKey
}

// brief is what a node is told.
type brief struct {
	Dir        string        `json:"dir"`
	Generation uint64        `json:"generation"`
	Run        string        `json:"run"`
	Key        []byte        `json:"key"` // public
	OrphanFor  time.Duration `json:"orphan_for"`
}

// savedRun is what the next warden must know. It goes with the generation; the home's owner alone can read it.
type savedRun struct {
	Run  string `json:"run"`
	Seed []byte `json:"seed"`
}

func newRun(gen uint64) (run, error) {
	r := run{Generation: gen}
	_, _ = rand.Read(r.ID[:]) // cannot fail
	var err error
	_, r.key, err = ed25519.GenerateKey(nil)
	return r, err
}

func (r run) text() string { return hex.EncodeToString(r.ID[:]) }

func (r run) save(dir string) error {
	data, err := json.Marshal(savedRun{r.text(), r.key.Seed()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, runFile), data, 0o600); err != nil {
		return fmt.Errorf("save the run: %w", home.NoRoom(err))
	}
	return nil
}

func loadRun(dir string, gen uint64) (run, error) {
	data, err := os.ReadFile(filepath.Join(dir, runFile))
	if err != nil {
		return run{}, fmt.Errorf("read the run: %w", err)
	}
	var s savedRun
	if err := json.Unmarshal(data, &s); err != nil {
		return run{}, fmt.Errorf("read the run: %w", err)
	}
	id, err := hex.DecodeString(s.Run)
	if err != nil || len(id) != 16 || len(s.Seed) != ed25519.SeedSize {
		return run{}, errors.New("read the run: it is damaged")
	}
	return run{ID: [16]byte(id), Generation: gen, key: ed25519.NewKeyFromSeed(s.Seed)}, nil
}

// environ is the node's environment.
func (r run) environ(c Config) ([]string, error) {
	env := c.Command.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == runVariable || name == wardenVariable || slices.Contains(supervisorVariables, name)
	})
	text, err := json.Marshal(brief{
		Dir: c.Home.Dir, Generation: r.Generation, Run: r.text(), Key: r.key.Public().(ed25519.PublicKey), OrphanFor: c.Policy.OrphanFor,
	})
	return append(env, runVariable+"="+r.text(), wardenVariable+"="+string(text)), err
}
