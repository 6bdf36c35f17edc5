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

package theme

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Width is the width of all charts.
const Width = vg.Length(760)

// Sizes of fonts.
const (
	TextSize  = vg.Length(11)
	TitleSize = vg.Length(14)
)

// Colors on a light ground. The style of the image has those on a dark ground.
var (
	Background = color.NRGBA{R: 0xfe, G: 0xfe, B: 0xfe, A: 0xff}
	Foreground = color.NRGBA{R: 0x1f, G: 0x23, B: 0x28, A: 0xff}
	Grid       = color.NRGBA{R: 0xd8, G: 0xde, B: 0xe4, A: 0xff}
	Good       = color.NRGBA{R: 0x09, G: 0x69, B: 0xda, A: 0xff}
	Bad        = color.NRGBA{R: 0xcf, G: 0x22, B: 0x2e, A: 0xff}
	Limit      = color.NRGBA{R: 0xbc, G: 0x4c, B: 0x00, A: 0xff}
)

// OnDark has the color on a dark ground for each color.
var OnDark = []struct {
	Light color.NRGBA
	Dark  string
}{
	{Background, "#0d1117"},
	{Foreground, "#e6edf3"},
	{Grid, "#30363d"},
	{Good, "#58a6ff"},
	{Bad, "#ff7b72"},
	{Limit, "#f0883e"},
}

// Font returns the font of all texts.
func Font(size vg.Length, weight font.Weight) plotfont.Font {
	return plotfont.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size}
}

// Apply sets the fonts and colors of a plot's title and axes.
func Apply(p *plot.Plot) {
	p.BackgroundColor = Background
	p.Title.Padding = 12
	p.Title.TextStyle.Font = Font(TitleSize, font.WeightBold)
	p.Title.TextStyle.Color = Foreground
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.Padding = 8
		for _, text := range []*text.Style{&axis.Label.TextStyle, &axis.Tick.Label} {
			text.Font = Font(TextSize, font.WeightNormal)
			text.Color = Foreground
		}
	}
}

// SVG returns plots, one below the other and each with the same height, as an image that follows the reader's choice of a
// light or a dark ground.
func SVG(height vg.Length, plots ...*plot.Plot) ([]byte, error) {
	canvas := vgsvg.New(Width, height*vg.Length(len(plots)))
	area := draw.New(canvas)
	for i, p := range plots {
		above := height * vg.Length(i)
		below := height*vg.Length(len(plots)) - height - above
		p.Draw(draw.Crop(area, 12, -18, below+10, -above-10))
	}
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
	for _, pair := range OnDark {
		light := fmt.Sprintf("#%02X%02X%02X", pair.Light.R, pair.Light.G, pair.Light.B)
		fmt.Fprintf(&rules, "[style*=\"fill:%s\"] { fill: %s !important }\n", light, pair.Dark)
		fmt.Fprintf(&rules, "[style*=\"stroke:%s\"] { stroke: %s !important }\n", light, pair.Dark)
	}
	fmt.Fprintf(&rules, "}\n</style>\n<rect width=\"100%%\" height=\"100%%\" style=\"fill:#%02X%02X%02X\"/>\n", Background.R, Background.G, Background.B)
	start := bytes.Index(image, []byte("<g "))
	if start < 0 {
		return nil, fmt.Errorf("the image has no group of elements")
	}
	return append(image[:start:start], append([]byte(rules.String()), image[start:]...)...), nil
}
