package webtest

import (
	_ "embed"

	"github.com/chromedp/chromedp/kb"
)

//go:embed check.js
var checks string

// Check fails the test for each thing on the page that a person with a keyboard, a screen reader, weak eyes or a phone would
// stumble over: fields without labels, contrast below 4.5, a focus that jumps, headings and landmarks that are not there, a
// page wider than its window.
func (b *Browser) Check(what string) {
	b.t.Helper()
	for _, wrong := range Eval[[]string](b, checks) {
		b.t.Errorf("%s: %s", what, wrong)
	}
}

// Walk presses Tab through the page and fails the test when the focus does not go through what can be reached in the order
// in which it stands there, or cannot be seen where it is.
func (b *Browser) Walk(what string) {
	b.t.Helper()
	const reachable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter(e => e.checkVisibility() && !e.disabled)`
	n := Eval[int](b, `(() => { document.activeElement.blur(); window.scrollTo(0, 0); return `+reachable+`.length; })()`)
	for i := range min(n, 25) {
		b.Press(kb.Tab)
		if at := Eval[int](b, reachable+`.indexOf(document.activeElement)`); at != i {
			b.t.Errorf("%s: Tab %d leads to the %dth of what can be reached", what, i+1, at+1)
			return
		}
		if Eval[bool](b, `getComputedStyle(document.activeElement).outlineStyle === "none"`) {
			b.t.Errorf("%s: where the focus is cannot be seen: %s", what, Eval[string](b, "document.activeElement.outerHTML"))
		}
	}
}
