package kept

import (
	"encoding/json"

	"github.com/fencepost/fencepost/gms/protocol"
)

// Put makes a record of row, as JSON, or replaces the one of that version. What row is made of can be encoded; that it cannot
// is a mistake in the program.
func Put(key string, row any, version uint64) Change {
	value, err := json.Marshal(row)
	if err != nil {
		panic("kept: the record " + key + " was not encoded: " + err.Error())
	}
	return Change{Key: key, Value: value, Version: version, Protocol: protocol.Needs(row)}
}

// Again writes a record as it is, so that it has another version: what else is changed counts only while it was this one.
func Again(r Record) Change { return Change{Key: r.Key, Value: r.Value, Version: r.Version} }
