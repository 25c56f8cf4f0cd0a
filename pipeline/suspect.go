package pipeline

import (
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// usualOf is how many earlier backups say what is usual.
const usualOf = 5

// Suspicions says what is odd about a new backup beside the earlier ones of its database, newest first: it is of another
// server, has half the usual size, or less than half of some kind of object. Only those that were asked for in the same way
// are compared. Pure.
func Suspicions(b ledger.Backup, earlier []ledger.Backup) (why []string) {
	like := slices.DeleteFunc(slices.Clone(earlier), func(x ledger.Backup) bool {
		return x.ID == b.ID || !x.Sound() || fmt.Sprint(x.Info.Options) != fmt.Sprint(b.Info.Options) || x.Info.Format != b.Info.Format
	})
	if len(like) == 0 {
		return nil
	}
	like = like[:min(len(like), usualOf)]
	if was := like[0].Info.SystemID; was != "" && b.Info.SystemID != "" && was != b.Info.SystemID {
		why = append(why, fmt.Sprintf("it is of another server: system %s, the one before is of %s", b.Info.SystemID, was))
	}
	sizes := make([]int64, 0, len(like))
	for _, x := range like {
		sizes = append(sizes, x.RawBytes)
	}
	slices.Sort(sizes)
	if usual := sizes[len(sizes)/2]; b.RawBytes*2 < usual {
		why = append(why, fmt.Sprintf("it has %d bytes, less than half of the usual %d", b.RawBytes, usual))
	}
	if was, is := like[0].Info.Globals, b.Info.Globals; was != nil && was.Lacking == "" && is != nil && is.Lacking != "" {
		why = append(why, "it has no roles and tablespaces of the server, the one before has: "+is.Lacking)
	}
	if b.Info.Counts != nil && like[0].Info.Counts != nil {
		for _, kind := range []string{"tables", "views", "large objects"} {
			if was, is := like[0].Info.Counts[kind], b.Info.Counts[kind]; is*2 < was {
				why = append(why, fmt.Sprintf("it has %d %s, the one before has %d", is, kind, was))
			}
		}
	}
	return why
}
