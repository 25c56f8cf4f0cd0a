package embedded_test

import (
	"testing"

	"github.com/fencepost/fencepost/pipeline/component/componenttest"
	"github.com/fencepost/fencepost/pipeline/ledger/embedded"
)

func TestItems(t *testing.T) {
	componenttest.Run(t, func(t *testing.T) componenttest.Bench {
		led, store := open(t, embedded.Config{})
		return componenttest.Bench{Items: embedded.NewItems(led, func() string { return "aa" }), Ledger: led, Group: store, Run: "aa"}
	})
}
