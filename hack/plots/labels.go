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
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	stdfont "golang.org/x/image/font"

	"synchub.dev/hack/plots/theme"
)

// Widths of the columns at the left of a chart. All text in them starts at the left: where a reader's fonts are wider than
// those that the plot was made with, nothing overlaps.
const (
	labelWidth  = vg.Length(228)
	numberWidth = vg.Length(114)
)

// labelled is a line of a chart with the texts at its left. A heading has no number.
type labelled struct {
	label, number string
}

// labels draws the columns at the left of a chart.
type labels []labelled

// Plot draws the texts outside of the area for data.
func (l labels) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for i, line := range l {
		weight := stdfont.WeightNormal
		if line.number == "" {
			weight = stdfont.WeightBold
		}
		style := text.Style{Color: theme.Foreground, Font: theme.Font(theme.TextSize, weight), YAlign: text.YCenter, Handler: plot.DefaultTextHandler}
		c.FillText(style, vg.Point{X: c.Min.X - labelWidth - numberWidth, Y: y(height(i))}, line.label)
		c.FillText(style, vg.Point{X: c.Min.X - numberWidth, Y: y(height(i))}, line.number)
	}
}

// GlyphBoxes reserves the space of the columns.
func (l labels) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	return []plot.GlyphBox{{Rectangle: vg.Rectangle{Min: vg.Point{X: -labelWidth - numberWidth}}}}
}
