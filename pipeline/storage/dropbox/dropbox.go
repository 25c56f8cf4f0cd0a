package dropbox

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dropbox/dropbox-sdk-go-unofficial/v6/dropbox/files"
)

const (
	// MinPart and MaxPart bound Options.PartSize, in bytes; it is a multiple of MinPart. The service takes 150 MiB at once.
	MinPart = 4 << 20
	MaxPart = 148 << 20
	// DefaultPart is what Options.PartSize 0 stands for, in bytes.
	DefaultPart = 8 << 20
	// MaxFolder is the longest Options.Folder, in bytes.
	MaxFolder = 100
)

// Options say where in an account. Zero values are defaults where one is named.
type Options struct {
	// Account is whose Dropbox it is. Storages of one account share one. Required.
	Account *Account
	// Folder is where objects are, below what the app may see: elements of letters, digits, "_", "-" and spaces, with
	// slashes between them, at most MaxFolder bytes. It is made by the first Put. Empty: all that the app may see is ours.
	Folder string
	// PartSize is what is sent at once, in bytes: a multiple of MinPart, up to MaxPart. A Put takes twice that. 0:
	// DefaultPart.
	PartSize int64
}

// Storage is a folder of an account. Made by Open.
type Storage struct {
	account *Account
	files   files.ContextClient
	root    string // with a slash at its begin and none at its end; or empty
	part    int
	// spaceEvery is a constant of the same name, but for tests.
	spaceEvery int64
}

var folderName = regexp.MustCompile(`^[A-Za-z0-9_-]([A-Za-z0-9 _-]*[A-Za-z0-9_-])?$`)

// Open checks o and returns the storage. It does not talk to the server: whether the account may be used shows at the
// first call.
func Open(o Options) (*Storage, error) {
	if o.PartSize == 0 {
		o.PartSize = DefaultPart
	}
	switch {
	case o.Account == nil:
		return nil, errors.New("open dropbox storage: account is missing")
	case o.PartSize < MinPart || o.PartSize > MaxPart || o.PartSize%MinPart != 0:
		return nil, fmt.Errorf("open dropbox storage: part size is %d, want a multiple of %d up to %d bytes", o.PartSize, MinPart, MaxPart)
	case len(o.Folder) > MaxFolder:
		return nil, fmt.Errorf("open dropbox storage: folder is %d bytes long, want at most %d", len(o.Folder), MaxFolder)
	}
	s := &Storage{account: o.Account, files: o.Account.files, part: int(o.PartSize), spaceEvery: spaceEvery}
	if o.Folder != "" {
		for element := range strings.SplitSeq(o.Folder, "/") {
			if !folderName.MatchString(element) {
				return nil, fmt.Errorf("open dropbox storage: folder is %q, want names of letters, digits, _, - and spaces, with slashes between them", o.Folder)
			}
		}
		s.root = "/" + o.Folder
	}
	return s, nil
}

// path of an object.
func (s *Storage) path(name string) string { return s.root + "/" + encode(name) }

// folder of the objects below name; of all with an empty one.
func (s *Storage) folder(name string) string {
	if name == "" {
		return s.root
	}
	return s.root + "/" + encodeFolder(name)
}

// name of the object at a path in lower case; ok is false for what is none of ours.
func (s *Storage) name(path string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(path, strings.ToLower(s.root)+"/")
	if !ok {
		return "", false
	}
	return decode(rest)
}
