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

// Package screen prints the progress of a command: finished lines, and below them a live part that [Screen.Draw]
// redraws in place. On an output that cannot be redrawn, such as a pipe, it prints finished lines only.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
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

	mu sync.Mutex
	// drawn is the live part below the finished lines, as drawn last.
	drawn string
}

// New returns a Screen for out. It is live if out is a terminal that understands control sequences, and if the user has not
// asked for plain text by NO_COLOR.
func New(out *os.File) *Screen {
	info, err := out.Stat()
	live := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == ""
	return &Screen{out: out, live: live}
}

// Live reports whether Draw has an effect.
func (s *Screen) Live() bool { return s.live }

// Println prints finished lines.
func (s *Screen) Println(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drawn := s.drawn
	s.replace("")
	fmt.Fprintln(s.out, text)
	s.replace(drawn)
}

// Draw replaces the live part. Its lines should not be wider than the terminal.
func (s *Screen) Draw(text string) {
	if !s.live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if text != s.drawn {
		s.replace(text)
	}
}

// replace erases the live part and writes text instead, in one write to avoid flicker.
func (s *Screen) replace(text string) {
	var output strings.Builder
	if s.drawn != "" {
		if breaks := strings.Count(s.drawn, "\n"); breaks > 0 {
			fmt.Fprintf(&output, "\033[%dA", breaks)
		}
		output.WriteString("\r\033[J")
	}
	output.WriteString(text)
	s.drawn = text
	if output.Len() > 0 {
		fmt.Fprint(s.out, output.String())
	}
}

// Step shows a title while work runs, with the elapsed time, and then the outcome. It returns the error of work.
func (s *Screen) Step(title string, work func() error) error {
	begun := time.Now()
	elapsed := func() string { return fmt.Sprintf("%.1fs", time.Since(begun).Seconds()) }
	interval := redrawEvery
	if !s.live {
		interval = repeatEvery
		s.Println(title + " …")
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()

	result := make(chan error, 1)
	go func() { result <- work() }()
	s.Draw(title + " …")
	for {
		select {
		case <-ticker.C:
			s.goesOn(fmt.Sprintf("%s … %s", title, elapsed()))
		case err := <-result:
			outcome := "done"
			if err != nil {
				outcome = "failed"
			}
			s.Draw("")
			s.Println(fmt.Sprintf("%s … %s after %s", title, outcome, elapsed()))
			return err
		}
	}
}

func (s *Screen) goesOn(line string) {
	if s.live {
		s.Draw(line)
		return
	}
	s.Println(line)
}
