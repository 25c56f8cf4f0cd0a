// Package webtest is a browser for tests of the page: a headless Chromium with a fresh profile, driven over the DevTools
// protocol.
//
//	b := webtest.Open(t)
//	b.Go("https://127.0.0.1:7948/")
//	b.Type("#name", "ann")
//	b.Click("form button")
//	b.Await(`document.title.startsWith("Overview")`)
//	b.Check()            // what a person with a keyboard, a screen reader or weak eyes would stumble over
//	b.Shot("overview")   // bin/screenshots/overview.png
//
// Everything that does not come about within a minute fails the test, with a picture of what was there instead. What the
// page's own script throws, and what the content policy refuses, fails the test when it ends. The browser and its profile are
// gone by then. Chromium comes from the machine (make deps): nothing is downloaded.
package webtest
