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
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"synchub.dev/hack/plots/results"
	"synchub.dev/hack/plots/theme"
)

// ratioChart draws, for each line, the median, the range of the rounds, and the limit.
func ratioChart(title string, lines []selected) (*plot.Plot, error) {
	texts := make([]labelled, len(lines))
	least, greatest, missed := 1.0, 1.0, false
	for i, l := range lines {
		texts[i].label = l.label
		if l.row == nil {
			continue
		}
		result := l.row.Result
		if result.Unit != "x" {
			return nil, fmt.Errorf("%q is no ratio: its unit is %q", l.row.What, result.Unit)
		}
		texts[i].number = fmt.Sprintf("%.2f×", result.Value)
		least, greatest = min(least, result.Least), max(greatest, result.Greatest)
		if l.row.Limit != nil {
			greatest = max(greatest, l.row.Limit.Value)
		}
		missed = missed || !l.row.Met()
	}
	p := newPlot(title, texts, ratioScale(least, greatest, missed))
	if err := addEqual(p); err != nil {
		return nil, err
	}
	if err := addRanges(p, lines); err != nil {
		return nil, err
	}
	return p, addPoints(p, lines)
}

// ratioScale returns an axis with some space beside the least and the greatest number.
func ratioScale(least, greatest float64, missed bool) scale {
	s := scale{step: 0.1, unit: "×", caption: "Dot: median of the rounds. Line: from the least to the greatest.\nOrange bar: limit."}
	if greatest > 2 {
		s.step = 0.5
	}
	if missed {
		s.caption += " Red: above the limit."
	}
	s.least = math.Floor(least/s.step-0.1) * s.step
	s.greatest = math.Ceil(greatest/s.step+0.1) * s.step
	return s
}

// addEqual marks the ratio 1.
func addEqual(p *plot.Plot) error {
	equal, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: p.Y.Max}})
	if err != nil {
		return err
	}
	equal.LineStyle = draw.LineStyle{Color: theme.Foreground, Width: 1, Dashes: []vg.Length{3, 3}}
	p.Add(equal)
	return nil
}

func addRanges(p *plot.Plot, lines []selected) error {
	for i, l := range lines {
		if l.row == nil {
			continue
		}
		spread, err := plotter.NewLine(plotter.XYs{{X: l.row.Result.Least, Y: height(i)}, {X: l.row.Result.Greatest, Y: height(i)}})
		if err != nil {
			return err
		}
		spread.LineStyle = draw.LineStyle{Color: colorOf(l.row), Width: 2}
		p.Add(spread)
	}
	return nil
}

// addPoints adds the medians and the limits.
func addPoints(p *plot.Plot, lines []selected) error {
	points := map[color.Color]plotter.XYs{}
	for i, l := range lines {
		if l.row == nil {
			continue
		}
		points[colorOf(l.row)] = append(points[colorOf(l.row)], plotter.XY{X: l.row.Result.Value, Y: height(i)})
		if l.row.Limit != nil {
			points[theme.Limit] = append(points[theme.Limit], plotter.XY{X: l.row.Limit.Value, Y: height(i)})
		}
	}
	for _, style := range []draw.GlyphStyle{
		{Color: theme.Limit, Radius: 7, Shape: barGlyph{}},
		{Color: theme.Good, Radius: 4, Shape: draw.CircleGlyph{}},
		{Color: theme.Bad, Radius: 4, Shape: draw.CircleGlyph{}},
	} {
		if len(points[style.Color]) == 0 {
			continue
		}
		scatter, err := plotter.NewScatter(points[style.Color])
		if err != nil {
			return err
		}
		scatter.GlyphStyle = style
		p.Add(scatter)
	}
	return nil
}

func colorOf(r *results.Row) color.NRGBA {
	if r.Met() {
		return theme.Good
	}
	return theme.Bad
}

// barGlyph is a vertical bar.
type barGlyph struct{}

// DrawGlyph draws the bar with the height of two radii.
func (barGlyph) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	c.SetColor(style.Color)
	c.SetLineWidth(2.5)
	c.SetLineDash(nil, 0)
	var bar vg.Path
	bar.Move(vg.Point{X: at.X, Y: at.Y - style.Radius})
	bar.Line(vg.Point{X: at.X, Y: at.Y + style.Radius})
	c.Stroke(bar)
}
