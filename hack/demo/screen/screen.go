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

// Package screen shows what goes on: finished lines, and below them a part that is redrawn in place while something is
// under way. Where nothing can be redrawn, as in a pipe, there are finished lines only.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// How often a step says that it still goes on: where that is redrawn, and where it takes a line each time.
const (
	redrawEvery = 200 * time.Millisecond
	repeatEvery = 30 * time.Second
)

// Screen is a terminal or a pipe. It may be used concurrently.
type Screen struct {
	out  io.Writer
	live bool

	mu sync.Mutex
	// drawn is the part below the finished lines, as it was drawn last.
	drawn string
}

// New returns the screen that is out. Where that is a terminal that understands control sequences it is live.
func New(out *os.File) *Screen {
	info, err := out.Stat()
	live := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &Screen{out: out, live: live}
}

// Live tells whether Draw has an effect.
func (s *Screen) Live() bool { return s.live }

// Println adds finished lines.
func (s *Screen) Println(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drawn := s.drawn
	s.replace("")
	fmt.Fprintln(s.out, text)
	s.replace(drawn)
}

// Draw replaces the part that is under way. Its lines should not be wider than the terminal.
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

// replace wipes what was drawn and draws text instead, in one write so that nothing flickers.
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

// Step shows what work does, for how long already, and its outcome.
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
