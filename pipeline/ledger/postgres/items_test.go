package postgres

import (
	"testing"

	"github.com/fencepost/fencepost/pipeline/component/componenttest"
)

func TestItems(t *testing.T) {
	componenttest.Run(t, func(t *testing.T) componenttest.Bench {
		b := open(t)
		return componenttest.Bench{Items: NewItems(b.led, func() string { return "aa" }), Ledger: b.led, Group: b.group, Run: "aa"}
	})
}
