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

package screen

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// terminal interprets the control sequences of a live screen.
type terminal struct {
	lines       []string
	row, column int
}

var sequence = regexp.MustCompile(`^\033\[(\d*)([AJ])`)

func (t *terminal) Write(output []byte) (int, error) {
	text := string(output)
	for len(text) > 0 {
		if len(t.lines) <= t.row {
			t.lines = append(t.lines, "")
		}
		if match := sequence.FindStringSubmatch(text); match != nil {
			t.control(match[1], match[2])
			text = text[len(match[0]):]
			continue
		}
		switch text[0] {
		case '\n':
			t.row, t.column = t.row+1, 0
		case '\r':
			t.column = 0
		default:
			t.lines[t.row] = t.lines[t.row][:t.column] + text[:1]
			t.column++
		}
		text = text[1:]
	}
	return len(output), nil
}

func (t *terminal) control(number, command string) {
	switch command {
	case "A":
		up, _ := strconv.Atoi(number)
		t.row -= up
	case "J":
		t.lines[t.row] = t.lines[t.row][:t.column]
		t.lines = t.lines[:t.row+1]
	}
}

func (t *terminal) shows() []string {
	if n := len(t.lines); n > 0 && t.lines[n-1] == "" {
		return t.lines[:n-1]
	}
	return t.lines
}

func newScreen(out io.Writer, width int) *Screen {
	return &Screen{out: out, live: true, width: func() int { return width }}
}

func TestALineNeverWraps(t *testing.T) {
	out := &terminal{}
	s := newScreen(out, 12)
	s.Println("a finished line wraps")
	s.Draw("twelve chars\neleven char")
	expectLines(t, out.shows(), "a finished line wraps", "twelve cha…", "eleven char")
	s.Draw("")
	expectLines(t, out.shows(), "a finished line wraps")
}

func TestATableStaysAboveTheLinesOfSteps(t *testing.T) {
	out := &terminal{}
	s := newScreen(out, 0)
	first, second := &step{}, &step{}
	s.Draw("a table")
	s.drawStep(first, "first")
	s.drawStep(second, "second")
	expectLines(t, out.shows(), "a table", "first", "second")
	s.drawStep(first, "first continues")
	s.Println("a note")
	expectLines(t, out.shows(), "a note", "a table", "first continues", "second")
	s.finish(first, "first is done")
	expectLines(t, out.shows(), "a note", "first is done", "a table", "second")
	s.finish(second, "second is done")
	expectLines(t, out.shows(), "a note", "first is done", "second is done", "a table")
}

func TestRecord(t *testing.T) {
	var out strings.Builder
	s := &Screen{out: &out}
	var frames []string
	s.Record(func(finished, live string) { frames = append(frames, finished+"|"+live) })
	s.Draw("table")
	s.drawStep(&step{}, "line")
	s.Println("end")
	if want := []string{"|table", "|table\nline", "end|table\nline"}; !slices.Equal(frames, want) {
		t.Errorf("the recording is %q, want %q", frames, want)
	}
	if out.String() != "end\n" {
		t.Errorf("the pipe got %q", out.String())
	}
}

func TestLiveScreen(t *testing.T) {
	out := &terminal{}
	s := newScreen(out, 0)
	expect := func(lines ...string) {
		t.Helper()
		if !slices.Equal(out.shows(), lines) {
			t.Fatalf("the terminal shows %q, want %q", out.shows(), lines)
		}
	}
	s.Println("one")
	expect("one")
	s.Draw("a long table\nwith rows")
	expect("one", "a long table", "with rows")
	s.Draw("a table\nof\nthree")
	expect("one", "a table", "of", "three")
	s.Println("two\nthree")
	expect("one", "two", "three", "a table", "of", "three")
	s.Draw("short")
	expect("one", "two", "three", "short")
	s.Draw("")
	expect("one", "two", "three")
	s.Println("end")
	expect("one", "two", "three", "end")
}

func TestStepOnALiveScreen(t *testing.T) {
	out := &terminal{}
	s := newScreen(out, 0)
	err := s.Step("start", func() error { s.Println("  a note"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	expectLines(t, out.shows(), "  a note", `start … done after \d+\.\ds`)
}

func TestStepInAPipe(t *testing.T) {
	var out strings.Builder
	s := &Screen{out: &out}
	failure := errors.New("no")
	if err := s.Step("start", func() error { s.Draw("unseen"); return failure }); !errors.Is(err, failure) {
		t.Errorf("the error of the step is %v", err)
	}
	expectLines(t, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), "start …", `start … failed after \d+\.\ds`)
}

func expectLines(t *testing.T, lines []string, patterns ...string) {
	t.Helper()
	if len(lines) != len(patterns) {
		t.Fatalf("the lines are %q, want %d", lines, len(patterns))
	}
	for i, pattern := range patterns {
		if !regexp.MustCompile("^" + pattern + "$").MatchString(lines[i]) {
			t.Errorf("line %d is %q, want %q", i, lines[i], pattern)
		}
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nobody reads it
	if New(file).Live() {
		t.Error("a screen on a file is live")
	}
}

func TestPlainTextIsRespected(t *testing.T) {
	// A character device, as a terminal is.
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Close() })
	for name, test := range map[string]struct {
		terminal, noColor string
		live              bool
	}{
		"a terminal":      {"xterm", "", true},
		"a dumb terminal": {"dumb", "", false},
		"no colors":       {"xterm", "1", false},
	} {
		t.Setenv("TERM", test.terminal)
		t.Setenv("NO_COLOR", test.noColor)
		if live := New(device).Live(); live != test.live {
			t.Errorf("%s is live: %t", name, live)
		}
	}
}
