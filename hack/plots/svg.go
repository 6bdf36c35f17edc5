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
	"bytes"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colors on a light ground. The style of the image has those on a dark ground.
var (
	background = color.NRGBA{R: 0xfe, G: 0xfe, B: 0xfe, A: 0xff}
	foreground = color.NRGBA{R: 0x1f, G: 0x23, B: 0x28, A: 0xff}
	gridColor  = color.NRGBA{R: 0xd8, G: 0xde, B: 0xe4, A: 0xff}
	good       = color.NRGBA{R: 0x09, G: 0x69, B: 0xda, A: 0xff}
	bad        = color.NRGBA{R: 0xcf, G: 0x22, B: 0x2e, A: 0xff}
	limitColor = color.NRGBA{R: 0xbc, G: 0x4c, B: 0x00, A: 0xff}
)

// onDark has the color on a dark ground for each color.
var onDark = []struct {
	light color.NRGBA
	dark  string
}{
	{background, "#0d1117"},
	{foreground, "#e6edf3"},
	{gridColor, "#30363d"},
	{good, "#58a6ff"},
	{bad, "#ff7b72"},
	{limitColor, "#f0883e"},
}

func colorOf(r *row) color.NRGBA {
	if r.met() {
		return good
	}
	return bad
}

// svg returns a plot as an image that follows the reader's choice of a light or a dark ground.
func svg(p *plot.Plot, height vg.Length) ([]byte, error) {
	canvas := vgsvg.New(width, height)
	area := draw.New(canvas)
	p.Draw(draw.Crop(area, 12, -18, 10, -10))
	var image bytes.Buffer
	if _, err := canvas.WriteTo(&image); err != nil {
		return nil, fmt.Errorf("write the image: %w", err)
	}
	return withStyle(image.Bytes())
}

// withStyle adds a style sheet. The plot sets colors and fonts at each element, which only important rules change.
func withStyle(image []byte) ([]byte, error) {
	var rules strings.Builder
	rules.WriteString("<style>\ntext { font-family: \"Liberation Sans\", Helvetica, Arial, sans-serif !important }\n")
	rules.WriteString("@media (prefers-color-scheme: dark) {\n")
	for _, pair := range onDark {
		light := fmt.Sprintf("#%02X%02X%02X", pair.light.R, pair.light.G, pair.light.B)
		fmt.Fprintf(&rules, "[style*=\"fill:%s\"] { fill: %s !important }\n", light, pair.dark)
		fmt.Fprintf(&rules, "[style*=\"stroke:%s\"] { stroke: %s !important }\n", light, pair.dark)
	}
	fmt.Fprintf(&rules, "}\n</style>\n<rect width=\"100%%\" height=\"100%%\" style=\"fill:#%02X%02X%02X\"/>\n", background.R, background.G, background.B)
	start := bytes.Index(image, []byte("<g "))
	if start < 0 {
		return nil, fmt.Errorf("the image has no group of elements")
	}
	return append(image[:start:start], append([]byte(rules.String()), image[start:]...)...), nil
}
