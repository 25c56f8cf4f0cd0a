package s3

const (
	// maxParts is the protocol's limit of parts of one upload.
	maxParts = 10_000
	// estimated is how many parts an object of the estimated size may take; the rest is for what goes beyond it.
	estimated = 9_000
	// growEvery is after how many parts the size doubles when there is no estimate.
	growEvery = 1_000
	// largestPart bounds a part, in bytes; the protocol's limit is 5 GiB.
	largestPart = 2 << 30
)

// partSize returns the size, in bytes, of part n (from 1) of an object of about estimate bytes (0: unknown), when the
// first parts have base bytes.
//
// With an estimate all parts are alike, so that 9,000 of them hold it: up to 70 GiB that is 8 MiB, for 1 TiB it is 117
// MiB. What goes beyond the estimate comes in parts of eight times that. Without one the size doubles each 1,000 parts:
// 7.8 GiB in parts of 8 MiB, 54 GiB with parts of up to 32 MiB, and 10,000 parts hold more than 5 TiB, which is the
// protocol's largest object.
func partSize(n int, base, estimate int64) int64 {
	const mib = 1 << 20
	if estimate > 0 {
		needed := (estimate + estimated - 1) / estimated
		size := max(base, (needed+mib-1)/mib*mib)
		if n > estimated {
			size *= 8
		}
		return min(size, largestPart)
	}
	size := base
	for range (n - 1) / growEvery {
		if size = size * 2; size >= largestPart {
			return largestPart
		}
	}
	return size
}
