package bench

// Row is one promise about speed.
type Row struct {
	What       string
	Against    string // with what it is compared; "" when the bound is absolute
	Goals      []Goal
	Unmeasured string // what is promised, of a row that has no measurement yet, and so no goals
}

func atMost(bound float64, bench, unit string) Goal {
	return Goal{Of: Metric{bench, unit}, Bound: bound}
}

// timesAtMost and timesAtLeast bound the ratio of one unit of two benchmarks.
func timesAtMost(bound float64, bench, unit, per string) Goal {
	return Goal{Of: Metric{bench, unit}, Per: Metric{per, unit}, Bound: bound}
}

func timesAtLeast(bound float64, bench, unit, per string) Goal {
	g := timesAtMost(bound, bench, unit, per)
	g.AtLeast = true
	return g
}

const (
	etcd      = "etcd, 3 servers, concurrency.Mutex"
	zookeeper = "ZooKeeper, 3 servers, go-zookeeper's Lock"
)

// Rows is the table, in the order in which it is shown.
var Rows = []Row{
	{
		What:  "kill -9 of a follower → fence raised, 5 nodes",
		Goals: []Goal{atMost(15, "KilledNode", "p50-ms"), atMost(60, "KilledNode", "p99-ms")},
	},
	{
		What:  "kill -9 of the leader → fence raised, 5 nodes",
		Goals: []Goal{atMost(100, "KilledLeader", "p99-ms")},
	},
	{What: "host cut off without a word → fence raised, profile lan", Unmeasured: "≤ TTL + 1 s"},
	{
		What: "TryLock + Unlock of free locks, 3 processes, 64 clients", Against: etcd,
		Goals: []Goal{timesAtLeast(4, "Locks/fencepost/free/clients=64", "pairs/s", "Locks/etcd/free/clients=64")},
	},
	{
		What: "the same with one client, median", Against: etcd,
		Goals: []Goal{timesAtMost(0.7, "Locks/fencepost/free/clients=1", "p50-ms", "Locks/etcd/free/clients=1")},
	},
	{
		What: "one contended lock, 32 clients: hand-overs", Against: etcd,
		Goals: []Goal{timesAtLeast(10, "Locks/fencepost/contended/clients=32", "pairs/s", "Locks/etcd/contended/clients=32")},
	},
	{
		What: "the same, beside ZooKeeper", Against: zookeeper,
		Goals: []Goal{timesAtLeast(3, "Locks/fencepost/contended/clients=32", "pairs/s", "Locks/zookeeper/contended/clients=32")},
	},
	{
		What:  "planned stop of a member → the fence on its work raised",
		Goals: []Goal{atMost(20, "PlannedStop", "p99-ms")},
	},
	{
		What: "RaiseFence + LowerFence, 16 at once", Against: etcd,
		Goals: []Goal{timesAtLeast(2, "Locks/fencepost/fences/clients=16", "pairs/s", "Locks/etcd/free/clients=16")},
	},
	{
		What: "backup with zstd -3 and age to one local storage", Against: "pg_dump -Fc -Z0 | zstd -3 -T1 | age > file",
		Goals: []Goal{
			timesAtLeast(0.95, "Dump/backup/fencepost", "MB/s", "Dump/backup/shell"),
			timesAtMost(1.15, "Dump/backup/fencepost", "cpu-s", "Dump/backup/shell"),
		},
	},
	{
		What: "the same to three storages", Against: "to one",
		Goals: []Goal{timesAtMost(1.15, "Dump/backup/three", "took-s", "Dump/backup/fencepost")},
	},
	{
		What: "restore of it", Against: "age -d | zstd -d | pg_restore",
		Goals: []Goal{timesAtLeast(0.95, "Dump/restore/fencepost", "MB/s", "Dump/restore/shell")},
	},
	{
		What:  "peak memory of a node in a backup and in a restore",
		Goals: []Goal{atMost(96, "Dump/backup/fencepost", "peak-MB"), atMost(96, "Dump/restore/fencepost", "peak-MB")},
	},
	{
		What:  "idle node and its warden in a group of 5",
		Goals: []Goal{atMost(1, "Idle", "core-%"), atMost(40, "Idle", "peak-MB")},
	},
	{What: "1,000 members simulated: bootstrap; ten killed at once", Unmeasured: "≤ 10 s of virtual time, ≤ 10 views; 1 or 2 views"},
	{
		What:  "50 processes, one killed: evidence → out of all views",
		Goals: []Goal{atMost(300, "Crowd", "p99-ms")},
	},
	{What: "members expelled at 30 % loss, 1,000 simulated node-hours", Unmeasured: "0"},
	{
		What:  "ledger with 1,000,000 tasks: newest tasks, a page in the middle, overview",
		Goals: []Goal{atMost(50, "Ledger/newest", "p99-ms"), atMost(50, "Ledger/middle", "p99-ms"), atMost(50, "Ledger/overview", "p99-ms")},
	},
	{
		What:  "start of a node to joined and ready, 3 others running",
		Goals: []Goal{atMost(1000, "Start", "p50-ms")},
	},
}
