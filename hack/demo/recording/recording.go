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

// Package recording keeps what a screen showed, and draws it as an animated SVG: a picture that moves wherever pictures are shown,
// without a script. [Recording.Add] receives the changes of a screen, and [Recording.WriteSVG] draws them.
package recording

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the time that a frame is shown. A recording has the real order, but shows no long waits, and commands long enough to be
// read.
const (
	shortest    = 120 * time.Millisecond
	longest     = 900 * time.Millisecond
	ofCommand   = 900 * time.Millisecond
	ofLastFrame = 5 * time.Second
)

// commandPrefix marks the line of a command.
const commandPrefix = "$ "

// Recording is what a terminal of a fixed number of rows and columns showed. It is safe for concurrent use.
type Recording struct {
	rows, columns int
	now           func() time.Time

	mu       sync.Mutex
	finished []string
	frames   []frame
}

// frame is what the terminal showed from a point in time on.
type frame struct {
	at    time.Time
	lines []string
	// command is set if a command was typed.
	command bool
}

// New returns an empty recording.
func New(rows, columns int) *Recording {
	return &Recording{rows: rows, columns: columns, now: time.Now}
}

// Add appends a change: text that was finished by it, or "", and the live part below all finished text.
func (r *Recording) Add(finished, live string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if finished != "" {
		r.finished = append(r.finished, r.wrap(finished)...)
	}
	lines := r.finished[max(0, len(r.finished)-r.rows):]
	if live != "" {
		lines = append(slices.Clip(lines), r.wrap(live)...)
	}
	next := frame{at: r.now(), lines: lines[max(0, len(lines)-r.rows):], command: strings.HasPrefix(finished, commandPrefix)}
	if n := len(r.frames); n > 0 && !r.frames[n-1].command && next.at.Sub(r.frames[n-1].at) < shortest {
		r.frames = r.frames[:n-1]
	}
	r.frames = append(r.frames, next)
}

// wrap breaks lines that are too long between words, and a word that is too long anywhere.
func (r *Recording) wrap(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		runes := []rune(line)
		for len(runes) > r.columns {
			end, next := r.columns, r.columns
			for at := r.columns; at > 0; at-- {
				if runes[at] == ' ' && strings.TrimSpace(string(runes[:at])) != "" {
					end, next = at, at+1
					break
				}
			}
			lines = append(lines, string(runes[:end]))
			runes = runes[next:]
		}
		lines = append(lines, string(runes))
	}
	return lines
}

// durations returns how long each frame is shown.
func (r *Recording) durations() (each []time.Duration, total time.Duration) {
	for i, one := range r.frames {
		shown := ofLastFrame
		if i+1 < len(r.frames) {
			shown = min(max(r.frames[i+1].at.Sub(one.at), shortest), longest)
			if one.command {
				shown = max(shown, ofCommand)
			}
		}
		each = append(each, shown)
		total += shown
	}
	return each, total
}
