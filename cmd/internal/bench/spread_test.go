package bench

import (
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, c := range []struct {
		list []time.Duration
		want Spread
	}{
		{nil, Spread{}},
		{[]time.Duration{7}, Spread{7, 7, 7}},
		{[]time.Duration{3, 1, 2}, Spread{2, 3, 3}},
		{[]time.Duration{4, 3, 1, 2}, Spread{2, 4, 4}},
		{hundred, Spread{50, 99, 100}},
	} {
		if got := SpreadOf(c.list); got != c.want {
			t.Errorf("%d values: %+v, want %+v", len(c.list), got, c.want)
		}
	}
}
