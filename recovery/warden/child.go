package warden

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/fencepost/fencepost/recovery/home"
)

// Child is the node's side: its seat in the home, and the lifeline to its warden.
type Child struct {
	seat     *home.Seat
	brief    brief
	run      [16]byte
	key      ed25519.PublicKey
	orphaned chan struct{}
	closing  chan struct{}
	watching sync.WaitGroup
	once     sync.Once
}

// lookForWarden is how often a node without a lifeline looks whether somebody has the warden lock.
const lookForWarden = 100 * time.Millisecond

// Inside takes the node's seat. It is called once, first of all; nil without an error means that no warden started this
// process. It takes over standard input, and takes what it was told out of the environment, so that children are not taken
// for nodes; what marks them as parts of the run stays. An error means that the warden is gone or does not want this process
// any more: the caller ends.
func Inside(ctx context.Context) (*Child, error) {
	text, ok := os.LookupEnv(wardenVariable)
	if !ok {
		return nil, nil
	}
	if err := os.Unsetenv(wardenVariable); err != nil {
		return nil, err
	}
	c := &Child{orphaned: make(chan struct{}), closing: make(chan struct{})}
	if err := json.Unmarshal([]byte(text), &c.brief); err != nil {
		return nil, fmt.Errorf("read what the warden says: %w", err)
	}
	id, err := hex.DecodeString(c.brief.Run)
	if err != nil || len(id) != len(c.run) || len(c.brief.Key) != ed25519.PublicKeySize {
		return nil, errors.New("read what the warden says: it is damaged")
	}
	copy(c.run[:], id)
	c.key = c.brief.Key
	c.seat, err = home.Join(ctx, home.Config{Dir: c.brief.Dir}, home.JoinOptions{Label: nodeLabel, Run: c.brief.Run})
	if err != nil {
		return nil, err
	}
	if c.seat.Generation() != c.brief.Generation {
		return nil, errors.Join(fmt.Errorf("the warden began generation %d meanwhile", c.seat.Generation()), c.seat.Close())
	}
	lost := make(chan struct{})
	go func() { // ends with the warden or with this process: a read of standard input cannot be called off
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(lost)
	}()
	c.watching.Go(func() { c.watch(lost) })
	return c, nil
}

// watch closes orphaned when nobody has been the warden for OrphanFor.
func (c *Child) watch(lost <-chan struct{}) {
	select {
	case <-lost:
	case <-c.closing:
		return
	}
	look := time.NewTicker(lookForWarden)
	defer look.Stop()
	alone := time.Now()
	for {
		if kept, err := home.Kept(c.brief.Dir); err == nil && kept {
			alone = time.Now()
		} else if time.Since(alone) >= c.brief.OrphanFor {
			close(c.orphaned)
			return
		}
		select {
		case <-look.C:
		case <-c.closing:
			return
		}
	}
}

// Run is the id that the warden gave to this run, and Key the public key that signs its obituaries: the node registers it.
func (c *Child) Run() [16]byte { return c.run }

// Key is the public half of the run's warden key.
func (c *Child) Key() ed25519.PublicKey { return c.key }

// Stands tells the warden that this process stands as another run of its group from now on: later obituaries speak of that
// one, signed by the same key. The node calls it before it opens the run, and registers the key with it. It writes a small
// file, and is not called from two goroutines at once. An error means that no obituary will be believed of that run.
func (c *Child) Stands(run [16]byte) error { return saveStands(c.seat.Volatile(), run) }

// Seat is the node's place in the home: Failed, Check, Failchk.
func (c *Child) Seat() *home.Seat { return c.seat }

// Beat says that the node makes progress. The first beat says that it is up; from then on a node whose beats stop is ended.
func (c *Child) Beat() { c.seat.Beat() }

// Orphaned is closed when the warden has died and none has come in its place within the policy's time: the node stops.
func (c *Child) Orphaned() <-chan struct{} { return c.orphaned }

// Parting is what a node says when it ends.
type Parting string

// Partings.
const (
	InOrder Parting = "in order" // it was asked to, or has nothing more to do: code 0
	GaveUp  Parting = "gave up"  // it says in its exit code what is wrong, and would say so again: it is not restarted
	Failed  Parting = "failed"   // a restart may help
)

// Close leaves the home: the last act of a node that ends by itself. It waits for the child's own goroutine. Calling it again
// does nothing. An error is one of leaving the seat.
func (c *Child) Close(p Parting) error {
	var err error
	c.once.Do(func() {
		close(c.closing)
		c.watching.Wait()
		err = c.seat.Leave(string(p))
	})
	return err
}
