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
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"synchub.dev/hack/plots/results"
	"synchub.dev/hack/plots/theme"
)

const (
	lineHeight = vg.Length(22)
	// margins are above and below the lines, for the title and the axis.
	margins = vg.Length(108)
)

// chart is a file with the lines of a chart, and how they are drawn.
type chart struct {
	file, title string
	lines       []line
	plot        func(title string, lines []selected) (*plot.Plot, error)
}

var charts = []chart{
	{"results-ratios.svg", "Time and processor time of the hub, compared", ratios, ratioChart},
	{"results-placement.svg", "Time of an edit in a workload workspace, compared", placementRatios, ratioChart},
	{"results-budgets.svg", "Memory and idle cost of the hub, of their limits", budgets, budgetChart},
}

// drawAll returns the charts by the names of their files.
func drawAll(rows []results.Row) (map[string][]byte, error) {
	images := map[string][]byte{}
	for _, c := range charts {
		lines, err := pick(c.lines, rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.file, err)
		}
		if len(lines) == 0 {
			continue
		}
		p, err := c.plot(c.title, lines)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.file, err)
		}
		if images[c.file], err = theme.SVG(lineHeight*vg.Length(len(lines))+margins, p); err != nil {
			return nil, fmt.Errorf("%s: %w", c.file, err)
		}
	}
	return images, nil
}

// newPlot returns a plot with the labels and numbers of lines at its left, from the top, and a grid.
func newPlot(title string, lines []labelled, axis scale) *plot.Plot {
	p := plot.New()
	theme.Apply(p)
	p.Title.Text = title
	p.HideY()
	p.X.Width, p.X.Tick.Width = 0, 0
	p.X.Label.Text = axis.caption
	p.X.Min, p.X.Max = axis.least, axis.greatest
	p.X.Tick.Marker = axis.ticks()
	p.Y.Min, p.Y.Max = height(len(lines))+0.4, 0.6
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: theme.Grid, Width: 1}
	grid.Horizontal.Width = 0
	p.Add(grid, labels(lines))
	return p
}

// scale is the horizontal axis.
type scale struct {
	least, greatest, step float64
	unit, caption         string
}

func (s scale) ticks() plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i := 0; s.least+float64(i)*s.step <= s.greatest+s.step/2; i++ {
		value := s.least + float64(i)*s.step
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 3, 64) + s.unit})
	}
	return ticks
}

// height returns the place of a line on the vertical axis: the first line is at the top.
func height(line int) float64 { return -float64(line) }
