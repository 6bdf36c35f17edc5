/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/test/clireference"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// absentPage is the end of an address where tests expect no page.
const absentPage = "/absent"

// browser is a tab of Chromium.
type browser struct {
	ctx context.Context
	// origin is the origin of the page.
	origin string

	lock sync.Mutex
	// problems are errors of the page, and requests to another origin.
	problems []string
}

// servePage runs the command ui until the test ends, and returns the printed address.
func servePage(t *testing.T, args ...string) *url.URL {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"ui"}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: printed, ErrOut: printed})
		_ = printed.Close()
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("ui ended with the status %d", code)
		}
	})
	var lines []string
	for reader := bufio.NewScanner(out); reader.Scan(); {
		line := strings.TrimSpace(reader.Text())
		if strings.HasPrefix(line, "http://") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			address, err := url.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			return address
		}
		lines = append(lines, line)
	}
	t.Fatalf("it prints no address:\n%s", strings.Join(lines, "\n"))
	return nil
}

// openBrowser starts Chromium with the page, which it logs in to.
func openBrowser(t *testing.T, address *url.URL) *browser {
	t.Helper()
	// Measurements of memory do not wait for a garbage collection.
	options := []chromedp.ExecAllocatorOption{chromedp.Flag("enable-blink-features", "ForceEagerMeasureMemory")}
	if os.Geteuid() == 0 {
		// Chromium has no sandbox for root, who runs tests in containers.
		options = append(options, chromedp.NoSandbox)
	}
	b := &browser{origin: address.Scheme + "://" + address.Host}
	ctx, stop := chromedp.NewContext(t.Context(), chromedp.WithAllocatorOptions(options...), chromedp.WithListener(b.observe))
	t.Cleanup(stop)
	b.ctx = ctx
	call(t, b, network.Enable, network.EnableParams{})
	call(t, b, log.Enable, cdp.Empty{})
	b.run(t, chromedp.Navigate(address.String()), chromedp.WaitVisible("h1"))
	return b
}

// call sends a command to the tab.
func call[P, R any](t *testing.T, b *browser, command cdp.Command[P, R], parameters P) R {
	t.Helper()
	result, err := chromedp.Call(b.ctx, command, parameters)
	if err != nil {
		t.Fatalf("%v; the tests of the page need Chromium or Chrome: run make browser", err)
	}
	return result
}

// observe records errors of the page, and requests to other origins.
func (b *browser) observe(event any) {
	b.lock.Lock()
	defer b.lock.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(event.Request.URL, b.origin+"/") {
			b.problems = append(b.problems, "request to "+event.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "exception "+event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if strings.HasSuffix(event.Entry.URL, absentPage) {
			return
		}
		b.problems = append(b.problems, "log "+event.Entry.Text)
	}
}

// verifyNoProblems fails the test if the page had an error, broke its own policy, or sent a request elsewhere.
func (b *browser) verifyNoProblems(t *testing.T) {
	t.Helper()
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, problem := range b.problems {
		t.Error(problem)
	}
}

// run runs actions in the tab.
func (b *browser) run(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, suite.Timeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// open shows a page of the server.
func (b *browser) open(t *testing.T, path string) {
	t.Helper()
	b.run(t, chromedp.Navigate(b.origin+path), chromedp.WaitVisible("h1"))
}

// evaluate returns the value of a JavaScript expression.
func evaluate[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// texts returns the texts of the elements that a selector matches, on one line each.
func (b *browser) texts(t *testing.T, selector string) []string {
	t.Helper()
	return evaluate[[]string](t, b, "[...document.querySelectorAll("+quote(selector)+")].map(e => e.innerText.trim().replace(/\\s+/g, ' '))")
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "\\'") + "'" }

// awaitText waits until an element has a text.
func (b *browser) awaitText(t *testing.T, selector, text string) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		g.Expect(b.texts(t, selector)).To(ContainElement(ContainSubstring(text)))
	})
}

// resize sets the size of the window, and whether the user prefers dark pages.
func (b *browser) resize(t *testing.T, width, height int64, dark bool) {
	t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(t, b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// picture writes a picture of the window for the documentation, with -update only.
func (b *browser) picture(t *testing.T, name string) {
	t.Helper()
	if !clireference.IsUpdate() {
		return
	}
	content, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../../docs/images/"+name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
