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

// Package chart draws the charts of the documentation as SVG, in colors for a light and a dark ground. Text is text, so that it can be
// searched and read aloud.
package chart

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"
)

// Color is a class of the style sheet.
type Color string

// The colors of data.
const (
	Good  Color = "good"
	Bad   Color = "bad"
	Limit Color = "limit"
	Text  Color = "text"
)

const style = `<style>
svg { --ground: #fff; --text: #1f2328; --grid: #d8dee4; --good: #0969da; --bad: #cf222e; --limit: #bc4c00; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #0d1117; --text: #e6edf3; --grid: #30363d; --good: #58a6ff; --bad: #ff7b72; --limit: #f0883e; }
}
text { font: 13px "Liberation Sans", Helvetica, Arial, sans-serif; fill: var(--text); }
.title { font-size: 16px; font-weight: bold; }
.heading { font-weight: bold; }
line, polyline { fill: none; stroke-width: 2; }
.grid { stroke: var(--grid); stroke-width: 1; }
.text { stroke: var(--text); }
.good { stroke: var(--good); } .bad { stroke: var(--bad); } .limit { stroke: var(--limit); }
circle.good { fill: var(--good); } circle.bad { fill: var(--bad); }
.mark { stroke-width: 4; }
.dashed { stroke-dasharray: 4 4; }
</style>
<rect width="100%" height="100%" style="fill: var(--ground)"/>
`

// Sizes in pixels.
const (
	width      = 800
	margin     = 16.0
	rowHeight  = 26.0
	head       = 48.0
	foot       = 60.0
	panelPlot  = 250.0
	textMiddle = 4.5
)

type drawing struct{ bytes.Buffer }

func (d *drawing) text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(d, "<text class=%q text-anchor=%q x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, anchor, x, y, html.EscapeString(text))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, "<line class=%q x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2)
}

func (d *drawing) image(width, height float64) []byte {
	return fmt.Appendf(nil, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0[1]f\" height=\"%.0[2]f\">\n%s%s</svg>\n",
		width, height, style, d.Bytes())
}

// Row is a row of a chart of dots. Without a number it is a heading.
type Row struct {
	Label, Number          string
	Least, Value, Greatest float64
	// Limit is NaN if there is none.
	Limit float64
}

// Axis is the horizontal axis of a chart of dots. Mark is a value that all rows are compared with.
type Axis struct {
	Least, Greatest, Step, Mark float64
	Unit, Caption               string
}

// Dots draws, for each row, its value, a line from the least to the greatest, and its limit.
func Dots(title string, axis Axis, rows []Row) []byte {
	const left = 440
	var d drawing
	bottom := head + rowHeight*float64(len(rows))
	x := func(value float64) float64 {
		return left + (width-2*margin-left)*(value-axis.Least)/(axis.Greatest-axis.Least)
	}
	d.text("title", "start", margin, margin+textMiddle*2, title)
	for step := 0.0; axis.Least+step*axis.Step <= axis.Greatest+axis.Step/2; step++ {
		value := axis.Least + step*axis.Step
		d.line("grid", x(value), head, x(value), bottom)
		d.text("", "middle", x(value), bottom+18, strconv.FormatFloat(value, 'g', 3, 64)+axis.Unit)
	}
	d.line("text dashed", x(axis.Mark), head, x(axis.Mark), bottom)
	for i, row := range rows {
		y := head + rowHeight*(float64(i)+0.5)
		if row.Number == "" {
			d.text("heading", "start", margin, y+textMiddle, row.Label)
			continue
		}
		d.text("", "start", margin, y+textMiddle, row.Label)
		d.text("", "end", left-margin, y+textMiddle, row.Number)
		color := Good
		if row.Value > row.Limit {
			color = Bad
		}
		d.line(string(color), x(row.Least), y, x(row.Greatest), y)
		if !math.IsNaN(row.Limit) {
			d.line(string(Limit)+" mark", x(row.Limit), y-8, x(row.Limit), y+8)
		}
		fmt.Fprintf(&d, "<circle class=%q cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n", color, x(row.Value), y)
	}
	d.text("", "start", margin, bottom+44, axis.Caption)
	return d.image(width, bottom+foot)
}

// Curve is a line of a panel.
type Curve struct {
	Label  string
	Color  Color
	Dashed bool
	Points [][2]float64
}

// Panel is a chart of curves. Its vertical axis is logarithmic if it does not start at zero; the horizontal one always is.
type Panel struct {
	Title, XLabel string
	XTicks        []float64
	YTicks        []float64
	Curves        []Curve
}

// Curves draws panels, one below the other.
func Curves(panels ...Panel) []byte {
	var d drawing
	for i, panel := range panels {
		d.panel(panel, float64(i)*(head+panelPlot+foot))
	}
	return d.image(width, float64(len(panels))*(head+panelPlot+foot))
}

func (d *drawing) panel(p Panel, top float64) {
	const left, right = 60.0, width - 2*margin
	bottom := top + head + panelPlot
	x, y := scale(p.XTicks, left, right), scale(p.YTicks, bottom, top+head)
	d.text("title", "start", margin, top+margin+textMiddle*2, p.Title)
	for _, tick := range p.XTicks {
		d.line("grid", x(tick), bottom, x(tick), top+head)
		d.text("", "middle", x(tick), bottom+18, label(tick))
	}
	for _, tick := range p.YTicks {
		d.line("grid", left, y(tick), right, y(tick))
		d.text("", "end", left-8, y(tick)+textMiddle, label(tick))
	}
	d.text("", "middle", (left+right)/2, bottom+38, p.XLabel)
	for i, curve := range p.Curves {
		class := string(curve.Color)
		if curve.Dashed {
			class += " dashed"
		}
		fmt.Fprintf(d, "<polyline class=%q points=\"", class)
		for _, point := range curve.Points {
			fmt.Fprintf(d, "%.1f,%.1f ", x(point[0]), y(point[1]))
		}
		fmt.Fprintln(d, "\"/>")
		legend := top + head + 18*float64(i+1)
		d.line(class, left+12, legend-textMiddle, left+40, legend-textMiddle)
		d.text("", "start", left+48, legend, curve.Label)
	}
}

// scale returns the place of each value, from the first to the last tick.
func scale(ticks []float64, from, to float64) func(float64) float64 {
	least, greatest, transform := ticks[0], ticks[len(ticks)-1], math.Log
	if least <= 0 {
		transform = func(value float64) float64 { return value }
	}
	return func(value float64) float64 {
		return from + (to-from)*(transform(value)-transform(least))/(transform(greatest)-transform(least))
	}
}

func label(value float64) string {
	if value < 1000 {
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return fmt.Sprintf("%.0f,%03.0f", math.Floor(value/1000), math.Mod(value, 1000))
}
