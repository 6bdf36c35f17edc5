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
	"fmt"
	"io"
	"strings"
	"time"
)

// Sizes in the picture, in pixels. charWidth is the width of a character of most monospace fonts at this size, rounded up.
const (
	charWidth  = 8.5
	lineHeight = 19
	ascent     = 14
	margin     = 16
)

const style = `rect { fill: #16181d }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6d9e0; white-space: pre }
text.command { fill: #8fd18f }
text.header { fill: #7fb4f0 }
`

// WriteSVG draws the recording. The frames stand below each other, and an animation moves a window over them. A user who has
// asked for no motion sees the last frame.
func (r *Recording) WriteSVG(out io.Writer, title string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.frames) == 0 {
		return errors.New("nothing was recorded")
	}
	width, height := int(float64(r.columns)*charWidth)+2*margin, r.rows*lineHeight+2*margin
	var svg strings.Builder
	fmt.Fprintf(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"%s\">\n",
		width, height, width, height, escape(title))
	r.writeStyle(&svg, height)
	ids := r.writeLines(&svg)
	fmt.Fprintf(&svg, "<rect width=\"%d\" height=\"%d\" rx=\"8\"/>\n<svg width=\"%d\" height=\"%d\"><g id=\"frames\">\n", width, height, width, height)
	for i, one := range r.frames {
		fmt.Fprintf(&svg, "<g transform=\"translate(%d %d)\">", margin, i*height+margin+ascent)
		for row, line := range one.lines {
			if id, ok := ids[line]; ok {
				fmt.Fprintf(&svg, "<use href=\"#l%d\" y=\"%d\"/>", id, row*lineHeight)
			}
		}
		svg.WriteString("</g>\n")
	}
	svg.WriteString("</g></svg>\n</svg>\n")
	_, err := io.WriteString(out, svg.String())
	return err
}

// writeStyle writes the animation: for each frame the share of the time at which it begins.
func (r *Recording) writeStyle(svg *strings.Builder, height int) {
	each, total := r.durations()
	fmt.Fprintf(svg, "<style>\n%s#frames { animation: play %.1fs step-end infinite }\n@keyframes play {\n", style, total.Seconds())
	var shown time.Duration
	for i, duration := range each {
		fmt.Fprintf(svg, "%.3f%% { transform: translateY(-%dpx) }\n", 100*shown.Seconds()/total.Seconds(), i*height)
		shown += duration
	}
	fmt.Fprintf(svg, "}\n@media (prefers-reduced-motion: reduce) { #frames { animation: none; transform: translateY(-%dpx) } }\n</style>\n", (len(each)-1)*height)
}

// writeLines defines each different line once, and returns the numbers of their ids.
func (r *Recording) writeLines(svg *strings.Builder) (ids map[string]int) {
	ids = map[string]int{}
	svg.WriteString("<defs>\n")
	for _, one := range r.frames {
		for _, line := range one.lines {
			if _, defined := ids[line]; defined || strings.TrimSpace(line) == "" {
				continue
			}
			ids[line] = len(ids)
			fmt.Fprintf(svg, "<text id=\"l%d\"%s xml:space=\"preserve\">%s</text>\n", ids[line], classOf(line), escape(line))
		}
	}
	svg.WriteString("</defs>\n")
	return ids
}

// classOf colors commands, and the headers of tables, which are in capitals.
func classOf(line string) string {
	switch {
	case strings.HasPrefix(line, commandPrefix):
		return ` class="command"`
	case strings.Contains(line, "  ") && line == strings.ToUpper(line) && line != strings.ToLower(line):
		return ` class="header"`
	default:
		return ""
	}
}

func escape(text string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a strings.Builder never fails
	return escaped.String()
}
