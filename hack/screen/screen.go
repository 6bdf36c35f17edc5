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

// Package screen prints the progress of a command: finished lines, and below them a live part that is redrawn in place: the
// table of [Screen.Draw], and a line for each running [Screen.Step]. On an output that cannot be redrawn, such as a pipe, it prints
// finished lines only.
package screen

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Intervals at which a running step is shown again: in place, and as a new line.
const (
	redrawEvery = 200 * time.Millisecond
	repeatEvery = 30 * time.Second
)

// Screen is a terminal or a pipe. It is safe for concurrent use.
type Screen struct {
	out  io.Writer
	live bool
	// width is the number of columns now, or 0 if it is unknown.
	width func() int
	// changed is called with each finished text and the live part below it. It may be nil.
	changed func(finished, live string)

	mu sync.Mutex
	// table and steps are the live part below the finished lines, and drawn is that part as drawn last.
	table, drawn string
	steps        []*step
}

// step is a running step and its line.
type step struct{ line string }

// New returns a Screen for out. It is live if out is a terminal that understands control sequences, and if the user has not
// asked for plain text by NO_COLOR.
func New(out *os.File) *Screen {
	info, err := out.Stat()
	live := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == ""
	return &Screen{out: out, live: live, width: func() int {
		width, _, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return 0
		}
		return width
	}}
}

// Record calls changed after each change, with the text that was finished by it, or "", and the live part. A recorded screen is
// live for the recording, although its output may not be. A nil function ends the recording.
func (s *Screen) Record(changed func(finished, live string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

// Live reports whether somebody sees the live part.
func (s *Screen) Live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live || s.changed != nil
}

// Println prints finished lines.
func (s *Screen) Println(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.println(text)
}

func (s *Screen) println(text string) {
	s.clear()
	fmt.Fprintln(s.out, text)
	s.draw()
	s.report(text)
}

// Draw replaces the table above the line of the running step.
func (s *Screen) Draw(table string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if table != s.table {
		s.table = table
		s.redraw()
	}
}

// drawStep replaces the line of a step. The first call adds it below the lines of older steps.
func (s *Screen) drawStep(running *step, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running.line = line
	if !slices.Contains(s.steps, running) {
		s.steps = append(s.steps, running)
	}
	s.redraw()
}

// finish replaces the line of a step by a finished one.
func (s *Screen) finish(done *step, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = slices.DeleteFunc(s.steps, func(running *step) bool { return running == done })
	s.println(text)
}

func (s *Screen) redraw() {
	s.clear()
	s.draw()
	s.report("")
}

// clear removes the live part from the terminal.
func (s *Screen) clear() {
	if s.drawn == "" {
		return
	}
	if breaks := strings.Count(s.drawn, "\n"); breaks > 0 {
		fmt.Fprintf(s.out, "\033[%dA", breaks)
	}
	fmt.Fprint(s.out, "\r\033[J")
	s.drawn = ""
}

// draw prints the live part, each line cut to the terminal: a line that wraps would leave rows behind when it is redrawn.
func (s *Screen) draw() {
	if !s.live {
		return
	}
	s.drawn = cut(s.livePart(), s.width())
	fmt.Fprint(s.out, s.drawn)
}

func (s *Screen) livePart() string {
	var lines []string
	if s.table != "" {
		lines = append(lines, s.table)
	}
	for _, running := range s.steps {
		lines = append(lines, running.line)
	}
	return strings.Join(lines, "\n")
}

func (s *Screen) report(finished string) {
	if s.changed != nil {
		s.changed(finished, s.livePart())
	}
}

// cut shortens each line of a text to the width, less the last column, after which terminals wrap. A width of 0 cuts nothing.
func cut(text string, width int) string {
	if width <= 1 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if runes := []rune(line); len(runes) >= width {
			lines[i] = string(runes[:width-2]) + "…"
		}
	}
	return strings.Join(lines, "\n")
}

// Step runs a part of the work and shows its title, the elapsed time, and at last how it ended. Several may run at a time.
func (s *Screen) Step(title string, work func() error) error {
	begun := time.Now()
	elapsed := func() string { return fmt.Sprintf("%.1fs", time.Since(begun).Seconds()) }
	interval := redrawEvery
	if !s.Live() {
		interval = repeatEvery
		s.Println(title + " …")
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()

	result := make(chan error, 1)
	go func() { result <- work() }()
	running := &step{}
	s.drawStep(running, title+" …")
	for {
		select {
		case <-ticker.C:
			s.continues(running, fmt.Sprintf("%s … %s", title, elapsed()))
		case err := <-result:
			outcome := "done"
			if err != nil {
				outcome = "failed"
			}
			s.finish(running, fmt.Sprintf("%s … %s after %s", title, outcome, elapsed()))
			return err
		}
	}
}

// continues shows the line of a step that is not done.
func (s *Screen) continues(running *step, line string) {
	if s.Live() {
		s.drawStep(running, line)
		return
	}
	s.Println(line)
}
