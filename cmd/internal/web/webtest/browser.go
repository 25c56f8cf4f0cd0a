package webtest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long something may take to come about.
const patience = time.Minute

// Browser is one tab of a browser of its own. It is for one goroutine.
type Browser struct {
	t   testing.TB
	ctx context.Context
	dir string // of the pictures

	mu    sync.Mutex
	wrong []string // what the page complained of
}

// Open starts a browser; the test's end ends it.
func Open(t testing.TB) *Browser {
	t.Helper()
	profile, err := os.MkdirTemp("", "fpweb") // removed by hand: the browser writes to it while it ends
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.IgnoreCertErrors,
		chromedp.UserDataDir(profile), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	b := &Browser{t: t, ctx: ctx, dir: shots(t)}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // it may have ended by itself
		cancel()
		stop()
		if err := os.RemoveAll(profile); err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, w := range b.wrong {
			t.Errorf("the browser says: %s", w)
		}
	})
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // the browser lives as long as the context that began it
		t.Fatalf("start chromium (make deps installs it): %v", err)
	}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	return b
}

// shots is the folder of the pictures, which git ignores.
func shots(t testing.TB) string {
	t.Helper()
	for dir := "."; ; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			out := filepath.Join(dir, "bin", "screenshots")
			if err := os.MkdirAll(out, 0o755); err != nil {
				t.Fatal(err)
			}
			return out
		}
		if strings.Count(dir, "..") > 20 {
			t.Fatal("the module's folder was not found")
		}
	}
}

// hear notes what the page throws and what its policy refuses. What a server answers with an error is the test's to judge.
func (b *Browser) hear(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError || e.Entry.Source == log.EntrySourceNetwork {
			return
		}
		text = e.Entry.Text
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, text)
}

// do makes steps, each within patience.
func (b *Browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.fail("the browser did not do it: " + err.Error())
	}
}

// fail ends the test with a picture.
func (b *Browser) fail(why string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	where, _ := chromedp.Run(ctx, chromedp.Location())
	path := filepath.Join(b.dir, "failed-"+strings.ReplaceAll(b.t.Name(), "/", "-")+".png")
	if picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100)); err == nil && os.WriteFile(path, picture, 0o644) == nil {
		why += "; see " + path
	}
	b.t.Fatalf("at %s: %s", where, why)
}

// Go opens an address and waits until the page is there.
func (b *Browser) Go(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// Click clicks the first element that a CSS selector finds, once it can be seen.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Type types into a field, in the place of what was there.
func (b *Browser) Type(selector, text string) {
	b.t.Helper()
	b.do(chromedp.Clear(chromedp.CSS(selector), chromedp.NodeVisible), chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press presses a key, such as kb.Tab.
func (b *Browser) Press(key string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(key))
}

// Eval gives the value of an expression.
func Eval[T any](b *Browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.fail("evaluate " + expression + ": " + err.Error())
	}
	return got
}

// Await waits until an expression is true, over reloads and other pages, too.
func (b *Browser) Await(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		if yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")")); err == nil && yes {
			return
		}
		select {
		case <-ctx.Done():
			b.fail("waited in vain until " + expression)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// AwaitText waits until a text can be read on the page.
func (b *Browser) AwaitText(text string) {
	b.t.Helper()
	b.Await("document.body && document.body.innerText.includes(" + strconv.Quote(text) + ")")
}

// Script has scripts of pages run, or not.
func (b *Browser) Script(on bool) {
	b.t.Helper()
	call(b, func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	})
}

// Wide makes the window so wide, in CSS pixels; below 500 it is a phone.
func (b *Browser) Wide(pixels int64) {
	b.t.Helper()
	options := []chromedp.EmulateViewportOption{}
	if pixels < 500 {
		options = append(options, chromedp.EmulateMobile)
	}
	b.do(chromedp.EmulateViewport(pixels, 900, options...))
}

// Dark has the page be asked for in dark colours, or in light ones.
func (b *Browser) Dark(on bool) {
	b.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	call(b, func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})
}

// Cookie gives the browser a cookie.
func (b *Browser) Cookie(address, name, value string) {
	b.t.Helper()
	call(b, func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.SetCookie, network.SetCookieParams{URL: address, Name: name, Value: value})
		return err
	})
}

// call makes a call of the protocol.
func call(b *Browser, f func(context.Context) error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := f(ctx); err != nil {
		b.fail(err.Error())
	}
}

// Shot keeps a picture of the whole page.
func (b *Browser) Shot(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}
