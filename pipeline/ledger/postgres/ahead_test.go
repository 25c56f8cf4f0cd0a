package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/pipeline/ledger"
)

// A ledger that has seen a higher number than its group has given out is refused until the group's numbers are above it:
// whether it holds a result, a task that runs, or only a fence of that number.
func TestLedgerAheadOfItsGroup(t *testing.T) {
	t.Parallel()
	for name, see := range map[string]func(b *bench) (token uint64){
		"result": func(b *bench) uint64 {
			g, row := b.take("t1", "aa")
			if err := b.write(g, row, ledger.Failed); err != nil {
				t.Fatal(err)
			}
			return g.Token
		},
		"running task": func(b *bench) uint64 {
			g, _ := b.take("t1", "aa")
			return g.Token
		},
		"fence": func(b *bench) uint64 {
			f := b.fence("aa", "bb")
			if err := b.led.ShutOut(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			return f.Token
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			seen := see(b)
			c := configOf(b.dsn)
			var given uint64
			var away error
			c.Reached = func(context.Context) (uint64, error) { return given, away }
			given = seen - 1
			_, err := Open(t.Context(), c)
			var hint interface{ Hint() string }
			if !errors.Is(err, ledger.ErrAhead) || !errors.Is(err, ledger.ErrUnavailable) || !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "group rebase") {
				t.Fatalf("open: %v", err)
			}
			given = seen
			led, err := Open(t.Context(), c)
			if err != nil {
				t.Fatalf("open after the numbers were raised: %v", err)
			}
			defer led.Close()
			if err := led.CheckAhead(t.Context()); err != nil {
				t.Error(err)
			}
			given = seen - 1
			if err := led.CheckAhead(t.Context()); !errors.Is(err, ledger.ErrAhead) {
				t.Errorf("look again: %v", err)
			}
			away = errors.New("no quorum")
			if err := led.CheckAhead(t.Context()); errors.Is(err, ledger.ErrAhead) || !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("a group that does not answer: %v", err)
			}
		})
	}
}
