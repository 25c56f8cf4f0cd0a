package storagetest

import (
	"slices"
	"testing"

	"github.com/fencepost/fencepost/pipeline/storage"
)

// Option says what cannot be asked of an implementation.
type Option int

const (
	// InMemory: objects are held in memory, so that memory cannot be bounded.
	InMemory Option = 1
	// ContentVersions: a version is a hash of the content, so that equal contents may have equal versions.
	ContentVersions Option = 2
)

// Run checks that storages made by open keep the contract of package storage. open is called for each part with its own
// t and returns an empty storage that nothing else uses; it registers its clean-up with t. Run takes some seconds and
// writes about 200 MiB.
func Run(t *testing.T, open func(t *testing.T) storage.Storage, options ...Option) {
	bounded, unique := !slices.Contains(options, InMemory), !slices.Contains(options, ContentVersions)
	parts := []struct {
		name string
		run  func(t *testing.T, s storage.Storage)
	}{
		{"Put/RoundTrip", putRoundTrip},
		{"Put/EmptyObject", putEmpty},
		{"Put/KeepsNames", putKeepsNames},
		{"Put/RefusesNames", refusesNames},
		{"Put/IsIfAbsent", putIfAbsent},
		{"Put/OneOfManyCreates", oneOfManyCreates},
		{"Put/ReplacesItsVersion", func(t *testing.T, s storage.Storage) { putReplaces(t, s, unique) }},
		{"Put/OneOfManyReplaces", oneOfManyReplaces},
		{"Put/ReaderErrorLeavesNothing", readerErrorLeavesNothing},
		{"Put/FailedReplaceKeepsTheOld", failedReplaceKeepsOld},
		{"Put/CancelLeavesNothing", cancelLeavesNothing},
		{"Put/StalledSourceLeavesNothing", stalledSourceLeavesNothing},
		{"Put/InvisibleUntilWhole", invisibleUntilWhole},
		{"Put/ReaderIsLeftAlone", readerIsLeftAlone},
		{"Put/LateOwnerIsRefused", lateOwnerIsRefused},
		{"Put/ObjectOrFolder", objectOrFolder},
		{"Get/ReadsOneVersion", getReadsOneVersion},
		{"Get/Cancelled", getCancelled},
		{"Absent", absent},
		{"Cancelled", cancelled},
		{"List/OrderAndPrefix", listOrderAndPrefix},
		{"List/HidesReserved", listHidesReserved},
		{"List/StopsAndFails", listStopsAndFails},
		{"Delete/Idempotent", deleteIdempotent},
		{"Delete/FreesNames", func(t *testing.T, s storage.Storage) { deleteFreesNames(t, s, unique) }},
		{"Concurrent", concurrentCalls},
		{"Big", func(t *testing.T, s storage.Storage) { big(t, s, bounded) }},
		{"Owner", ownerObject},
		{"GroupFolder", groupFolder},
		{"TwoGroups/Owner", twoGroups},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.run(t, open(t)) })
	}
}
