// Package componenttest is what every component.Items must pass.
//
//	func TestItems(t *testing.T) {
//		componenttest.Run(t, func(t *testing.T) componenttest.Bench { … })
//	}
//
// What it holds:
//
//   - claims are checked where a write takes effect, and a repeated write has its effect once;
//   - two components never lose each other's events;
//   - events appended and forgotten by hand count like others, and the newest of a type is never lost to the bound;
//   - triggers mean what component.Trigger.Match says, in the order of component.Order, however an implementation asks for
//     them: random items and triggers, with times that collide; FENCEPOST_SEED repeats a run.
package componenttest
