package gossip

import (
	"bytes"
	"sync"

	"github.com/hashicorp/memberlist"
)

// metaDelegate gives the library this member's meta. Gossip carries no messages of the host.
type metaDelegate struct {
	mu   sync.Mutex
	meta []byte
}

var _ memberlist.Delegate = (*metaDelegate)(nil)

func (d *metaDelegate) set(meta []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.meta = bytes.Clone(meta)
}

// NodeMeta is called by the library whenever it says that this member is alive. Its size was checked when it was set.
func (d *metaDelegate) NodeMeta(int) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.meta)
}

func (d *metaDelegate) NotifyMsg([]byte)                {}
func (d *metaDelegate) GetBroadcasts(int, int) [][]byte { return nil }
func (d *metaDelegate) LocalState(bool) []byte          { return nil }
func (d *metaDelegate) MergeRemoteState([]byte, bool)   {}
