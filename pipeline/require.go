package pipeline

import (
	"fmt"
	"strconv"
)

// Needed is how many of total storages must hold a copy by require: "all" (or ""), "any", or a number from 1 to total.
func Needed(require string, total int) (int, error) {
	switch require {
	case "", "all":
		return total, nil
	case "any":
		return min(1, total), nil
	}
	n, err := strconv.Atoi(require)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("require is %q: want all, any, or a number from 1", require)
	}
	if n > total {
		return 0, fmt.Errorf("require is %d, but only %d storages are chosen", n, total)
	}
	return n, nil
}
