package configs

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes. In files it is a plain number or one with a unit:
// 512KiB, 20MiB, 1GiB (powers of 1024), 20MB (powers of 1000).
type ByteSize int64

// unit is a suffix of a ByteSize and its factor; longer suffixes come first.
type unit struct {
	suffix string
	factor int64
}

func units() []unit {
	return []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
	}
}

// String is the size with the largest unit that loses nothing.
func (b ByteSize) String() string {
	for _, suffix := range []string{"TiB", "GiB", "MiB", "KiB"} {
		for _, u := range units() {
			if u.suffix == suffix && b != 0 && int64(b)%u.factor == 0 {
				return strconv.FormatInt(int64(b)/u.factor, 10) + suffix
			}
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

func (b *ByteSize) parse(text string) error {
	bad := errors.New("want a number of bytes such as 1048576, 512KiB or 20MiB")
	for _, u := range units() {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n > math.MaxInt64/u.factor || n < math.MinInt64/u.factor {
			return bad
		}
		*b = ByteSize(n * u.factor)
		return nil
	}
	return bad
}

// Require is how many of the chosen storages must hold a backup: RequireAll, RequireAny,
// or a number.
type Require int

// Requirements with names.
const (
	RequireAll Require = 0
	RequireAny Require = 1
)

// Of is the number of storages needed out of total.
func (r Require) Of(total int) int {
	if r == RequireAll {
		return total
	}
	return int(r)
}

// String is all, any, or the number.
func (r Require) String() string {
	switch r {
	case RequireAll:
		return "all"
	case RequireAny:
		return "any"
	default:
		return strconv.Itoa(int(r))
	}
}

func (r *Require) parse(text string) error {
	switch text {
	case "all":
		*r = RequireAll
		return nil
	case "any":
		*r = RequireAny
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("want all, any, or a number of storages from 1")
	}
	*r = Require(n)
	return nil
}
