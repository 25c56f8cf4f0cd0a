package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/groupstate"
	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline/processor"
	"github.com/fencepost/fencepost/pipeline/storage"
)

// GroupStateOptions say what a group has kept of itself where.
type GroupStateOptions struct {
	StorageOptions        // Signers tells whose signatures are believed
	Object         string // name; empty: the newest
	// AcceptForeign believes what is signed by a key that is not on the list of signers.
	AcceptForeign bool
	// Cluster is the id of the group that is to take it, which may own the storage already; empty: none.
	Cluster string
}

// GroupState is what was read.
type GroupState struct {
	Storage string    `json:"storage"`
	Object  string    `json:"object"`
	Made    time.Time `json:"made"`
	Node    string    `json:"node"`
	Group   string    `json:"group"`
	Cluster string    `json:"cluster"`
	Without []string  `json:"without,omitempty"`
	Owner   OwnedBy   `json:"owner"` // of the storage
	// Packed is the state, for the group that takes it; it holds secrets.
	Packed []byte `json:"-"`
}

// ReadGroupState reads what a group has kept of itself in a storage of a configuration, with the keys of its processors.
// Nothing is written. What is damaged, does not open, is of a newer version or of another group is an error that says so;
// another one is never taken in its place, but named in the hint.
func ReadGroupState(ctx context.Context, o GroupStateOptions) (GroupState, error) {
	c, section, err := sectionOf(o.StorageOptions)
	if err != nil {
		return GroupState{}, err
	}
	known, err := registryOf(c)
	if err != nil {
		return GroupState{}, err
	}
	bare, closer, err := OpenStorage(section, Accounts{}, true, slog.New(slog.DiscardHandler))
	if err != nil {
		return GroupState{}, advise(section, fmt.Errorf("storage %s: %w", section.Name, err))
	}
	st := storage.Retry(bare, storage.RetryOptions{})
	out, err := readGroupState(ctx, o, c.Home, st, known)
	return out, errors.Join(advise(section, err), closer())
}

func readGroupState(ctx context.Context, o GroupStateOptions, home string, st storage.Storage, known processor.Registry) (out GroupState, err error) {
	owner, err := storage.CheckOwner(ctx, st, "")
	if !errors.Is(err, storage.ErrForeign) {
		return out, fmt.Errorf("storage %s: %w", o.Storage, err) // nobody owns it, or it cannot be read
	}
	list, err := groupstate.List(ctx, st)
	if err != nil {
		return out, fmt.Errorf("storage %s: %w", o.Storage, err)
	}
	if len(list) == 0 {
		return out, &adviceError{fmt.Errorf("storage %s holds no state of a group", o.Storage), "try another storage of the group; one that was never used by it has none"}
	}
	name, older := list[0].Name, list[1:]
	if o.Object != "" {
		name = o.Object
		older = nil
		for i, s := range list {
			if s.Name == name {
				older = list[i+1:]
			}
		}
	}
	sealed, err := groupstate.Read(ctx, st, name)
	if err == nil {
		before := ""
		if owner.Cluster == o.Cluster { // an earlier try has taken the storage over
			before = sealed.Cluster
		}
		err = sealed.Belongs(owner, before)
	}
	if err == nil && !o.AcceptForeign {
		err = believedState(o, home, sealed)
	}
	var state groupstate.State
	if err == nil {
		state, err = sealed.Open(known)
	}
	if err != nil {
		return out, orOlder(err, older)
	}
	out = GroupState{Storage: o.Storage, Object: name, Made: sealed.Made, Node: sealed.Node, Group: sealed.Group, Cluster: sealed.Cluster, Without: sealed.Without, Owner: ownedBy(owner)}
	out.Packed, err = state.Pack()
	return out, err
}

// orOlder adds to what is wrong with an object which one is the next, if another could be better.
func orOlder(err error, older []groupstate.Stored) error {
	hint := ""
	var own interface{ Hint() string }
	switch {
	case errors.As(err, &own):
		return err
	case errors.Is(err, groupstate.ErrNewer):
		hint = "use the version of fencepost that made it, or a later one"
	case errors.Is(err, groupstate.ErrLocked):
		hint = "name a configuration or a kit whose processors have the identity_file or passphrase_file of that group"
	case len(older) > 0:
		hint = fmt.Sprintf("the next older one is of %s: --object %s takes it", older[0].At.UTC().Format(time.DateTime+"Z"), older[0].Name)
	default:
		hint = "there is no older one here: try another storage of the group"
	}
	return &adviceError{err, hint}
}

// believedState says why the signature of a state is not believed.
func believedState(o GroupStateOptions, home string, s groupstate.Sealed) error {
	path := o.Signers
	if path == "" {
		path = filepath.Join(home, SignersName)
	}
	list, err := ReadSigners(path)
	if err != nil && (o.Signers != "" || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	if err == nil && list.Know(s.Cluster, s.Node, s.Key) {
		return nil
	}
	return &adviceError{fmt.Errorf("the group's state %s is signed as node %q's of group %s (%.40s) with a key that is not on the list of signers", s.Name, s.Node, s.Group, s.Cluster),
		"name the lost group's " + SignersName + " by --signers (a kit holds it); if you know where the state comes from, --accept-foreign takes it all the same: who signed it decides who may log in"}
}

// registryOf knows the processors of a configuration, and those that it has not.
func registryOf(c *configs.Config) (processor.Registry, error) {
	var configured []processor.Processor
	for i, p := range c.Processors {
		made, err := OpenProcessor(p)
		if err != nil {
			return nil, fmt.Errorf("processors[%d] %s: %w", i, p.Kind, err)
		}
		configured = append(configured, made)
	}
	return processor.NewRegistry(Known(configured)...)
}

// TakenStorage is what became of a storage of a lost group.
type TakenStorage struct {
	Storage string `json:"storage"`
	Taken   bool   `json:"taken"` // it is the new group's now; false: it was already, or Problem says why not
	Problem string `json:"problem,omitempty"`
}

// TakeOverStorages makes the storages of a configuration which belong to a lost group those of another, and says what became
// of each. What belongs to nobody, or to a third group, is left as it is.
func TakeOverStorages(ctx context.Context, o StorageOptions, from, to string) ([]TakenStorage, error) {
	c, _, err := sectionOf(o)
	if err != nil {
		return nil, err
	}
	var list []TakenStorage
	for _, section := range c.Storages {
		one := TakenStorage{Storage: section.Name}
		if one.Taken, err = takeOver(ctx, section, from, to); err != nil {
			one.Problem = err.Error()
		}
		list = append(list, one)
	}
	return list, context.Cause(ctx)
}

func takeOver(ctx context.Context, section configs.Storage, from, to string) (taken bool, err error) {
	st, closer, err := OpenStorage(section, Accounts{}, false, slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, closer()) }()
	owner, err := storage.CheckOwner(ctx, st, to)
	switch {
	case err == nil:
		return false, nil
	case !errors.Is(err, storage.ErrForeign) || owner.Cluster != from:
		return false, err
	}
	_, err = storage.Adopt(ctx, st, storage.Adoption{Cluster: to, TakeOver: true})
	return err == nil, err
}

// GroupStateName is the whole name of an object of which a person may leave out the folder.
func GroupStateName(text string) string {
	if text == "" || strings.HasPrefix(text, storage.GroupFolder+"/") {
		return text
	}
	return storage.GroupFolder + "/" + text
}
