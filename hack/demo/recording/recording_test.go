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

package recording

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func record(changes ...func(r *Recording)) *Recording {
	r := New(3, 10)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.now = func() time.Time { return at }
	for _, change := range changes {
		change(r)
		at = at.Add(10 * time.Second)
	}
	return r
}

func add(finished, live string) func(*Recording) {
	return func(r *Recording) { r.Add(finished, live) }
}

func TestAFrameIsTheEndOfWhatWasPrinted(t *testing.T) {
	r := record(add("one\ntwo", ""), add("", "live"), add("a long line wraps", "live\nlive"))
	want := [][]string{{"one", "two"}, {"one", "two", "live"}, {"line wraps", "live", "live"}}
	for i, one := range r.frames {
		if !slices.Equal(one.lines, want[i]) {
			t.Errorf("frame %d shows %q, want %q", i, one.lines, want[i])
		}
	}
}

func TestLinesBreakBetweenWords(t *testing.T) {
	for text, want := range map[string][]string{
		"ten column":             {"ten column"},
		"ten column wide":        {"ten column", "wide"},
		"a long line wraps":      {"a long", "line wraps"},
		"with averylongwordinit": {"with", "averylongw", "ordinit"},
		"  indented words":       {"  indented", "words"},
		"          x":            {"          ", "x"},
		"größer als größer":      {"größer als", "größer"},
		"one\n\ntwo":             {"one", "", "two"},
	} {
		if got := New(3, 10).wrap(text); !slices.Equal(got, want) {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
}

func TestChangesAtOneTimeAreOneFrame(t *testing.T) {
	r := New(3, 10)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.now = func() time.Time { return at }
	r.Add("one", "")
	r.Add("two", "")
	if len(r.frames) != 1 || len(r.frames[0].lines) != 2 {
		t.Errorf("the frames are %+v", r.frames)
	}
}

func TestWaitsAreShortAndCommandsCanBeRead(t *testing.T) {
	r := record(add("$ kubectl", ""), add("", "waiting"), add("done", ""))
	each, total := r.durations()
	if want := []time.Duration{ofCommand, longest, ofLastFrame}; !slices.Equal(each, want) || total != ofCommand+longest+ofLastFrame {
		t.Errorf("the frames are shown for %v, want %v", each, want)
	}
}

func TestSVG(t *testing.T) {
	r := record(add("$ a <b>", ""), add("A  B", "a <c>"), add("", "a <c>\nmore"))
	var svg strings.Builder
	if err := r.WriteSVG(&svg, "two & one"); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(svg.String()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg.String())
		}
	}
	for _, want := range []string{
		`aria-label="two &amp; one"`,
		`<text id="l0" class="command" xml:space="preserve">$ a &lt;b&gt;</text>`,
		`class="header" xml:space="preserve">A  B<`,
		"prefers-reduced-motion",
	} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("there is no %s in\n%s", want, svg.String())
		}
	}
	if count := strings.Count(svg.String(), "a &lt;c&gt;"); count != 1 {
		t.Errorf("a line of two frames is written %d times", count)
	}
	if err := New(3, 10).WriteSVG(&svg, ""); err == nil {
		t.Error("an empty recording is drawn")
	}
}
