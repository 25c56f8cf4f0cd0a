package s3

import (
	"testing"

	"pgregory.net/rapid"
)

func total(base, estimate int64, parts int) (sum int64, largest int64) {
	for n := 1; n <= parts; n++ {
		size := partSize(n, base, estimate)
		sum += size
		largest = max(largest, size)
	}
	return sum, largest
}

func TestPartSizes(t *testing.T) {
	const mib, gib, tib = int64(1) << 20, int64(1) << 30, int64(1) << 40
	for _, c := range []struct {
		n        int
		estimate int64
		want     int64
	}{
		{1, 0, 8 * mib}, {1000, 0, 8 * mib}, {1001, 0, 16 * mib}, {2001, 0, 32 * mib}, {10_000, 0, 2 * gib},
		{1, 1, 8 * mib}, {9000, 70 * gib, 8 * mib}, {9001, 70 * gib, 64 * mib},
		{1, 71 * gib, 9 * mib}, {1, tib, 117 * mib}, {9001, 5 * tib, 2 * gib},
	} {
		if got := partSize(c.n, DefaultPart, c.estimate); got != c.want {
			t.Errorf("part %d of about %d bytes has %d, want %d", c.n, c.estimate, got, c.want)
		}
	}
	for _, base := range []int64{MinPart, DefaultPart, MaxPart} {
		if sum, _ := total(base, 0, maxParts); sum < 5*tib/2 {
			t.Errorf("without an estimate parts of %d bytes hold %d GiB in all", base, sum/gib)
		}
	}
	if sum, _ := total(DefaultPart, 0, maxParts); sum < 5*tib {
		t.Errorf("by default parts hold %d GiB in all", sum/gib)
	}
}

// Any object of the estimated size fits into the parts foreseen for it, with room for as much again.
func TestAnEstimateFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(MinPart, MaxPart).Draw(t, "base")
		estimate := rapid.Int64Range(1, 5<<40).Draw(t, "estimate")
		held, size := total(base, estimate, estimated)
		if held < estimate {
			t.Fatalf("9,000 parts of %d bytes hold %d of %d", size, held, estimate)
		}
		if size > base && size > estimate/estimated+1<<20 {
			t.Fatalf("parts of %d bytes are larger than needed", size)
		}
		if all, _ := total(base, estimate, maxParts); estimate < 2<<40 && all < estimate*3/2 {
			t.Fatalf("all parts hold %d of %d and little more", all, estimate)
		}
	})
}
