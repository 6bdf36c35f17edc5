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
	"context"
	"fmt"
	"image/color"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	lineHeight = textSize + 4
	noData     = "No data"
	// headroom is the part of the values that is free above them.
	headroom = 0.1
)

// stat draws the value of the last moment.
func (p panel) stat(ctx context.Context, q *querier, c draw.Canvas) error {
	results, err := q.atEnd(ctx, p.Targets[0].Expr)
	if err != nil {
		return err
	}
	shown, in := noData, color.Color(pale)
	if len(results) > 0 {
		shown, in = format(results[0].last(), p.FieldConfig.Defaults.Unit), p.colorOf(results[0].last())
	}
	c.FillText(style(24, stdfont.WeightBold, in, text.XCenter, text.YCenter), c.Center(), shown)
	return nil
}

// colorOf returns the color of the last threshold that a value reaches.
func (p panel) colorOf(value float64) color.Color {
	in := green
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if step.Value != nil && value >= *step.Value && step.Color == "red" {
			in = red
		}
	}
	return in
}

// legend fills the labels of a result into a format like {{direction}} p50.
func legend(format string, of labels.Labels) string {
	if format == "" {
		return of.String()
	}
	of.Range(func(l labels.Label) {
		for _, name := range []string{"{{" + l.Name + "}}", "{{ " + l.Name + " }}"} {
			format = strings.ReplaceAll(format, name, l.Value)
		}
	})
	return format
}

// named is a result with its name in the legend.
type named struct {
	series
	name string
}

func (p panel) results(ctx context.Context, evaluate func(context.Context, string) ([]series, error)) ([]named, error) {
	var all []named
	for _, target := range p.Targets {
		results, err := evaluate(ctx, target.Expr)
		if err != nil {
			return nil, err
		}
		for _, one := range results {
			all = append(all, named{one, legend(target.LegendFormat, one.labels)})
		}
	}
	return all, nil
}

// graph draws the values over time, and a legend below.
func (p panel) graph(ctx context.Context, q *querier, c draw.Canvas) error {
	results, err := p.results(ctx, q.over)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		c.FillText(style(textSize, stdfont.WeightNormal, pale, text.XCenter, text.YCenter), c.Center(), noData)
		return nil
	}
	legendHeight := drawLegend(c, results)
	axes := p.axes()
	below := map[int64]float64{}
	for i, one := range results {
		var points plotter.XYs
		for _, point := range one.points {
			points = append(points, plotter.XY{X: float64(point.T) / 1000, Y: point.F + below[point.T]})
			if p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal" {
				below[point.T] += point.F
			}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("draw %s: %w", one.name, err)
		}
		line.LineStyle = draw.LineStyle{Color: palette[i%len(palette)], Width: 1.5}
		axes.Add(line)
	}
	axes.X.Min, axes.X.Max = float64(q.first.Unix()), float64(q.last.Unix())
	axes.Y.Min = min(axes.Y.Min, 0)
	axes.Y.Max += (axes.Y.Max - axes.Y.Min) * headroom
	if axes.Y.Max == axes.Y.Min {
		axes.Y.Max++
	}
	axes.Draw(draw.Crop(c, 0, -gap, legendHeight+gap, -2*gap))
	return nil
}

// axes returns an empty plot with a grid, times and the unit of the panel.
func (p panel) axes() *plot.Plot {
	axes := plot.New()
	axes.BackgroundColor = surface
	for _, axis := range []*plot.Axis{&axes.X, &axes.Y} {
		axis.Width, axis.Tick.Width, axis.Padding = 0, 0, gap
		axis.Tick.Label = style(textSize-1.5, stdfont.WeightNormal, pale, axis.Tick.Label.XAlign, axis.Tick.Label.YAlign)
	}
	axes.X.Tick.Marker = plot.TickerFunc(func(from, to float64) []plot.Tick {
		const parts = 3
		var ticks []plot.Tick
		for i := range parts {
			at := from + (to-from)*(float64(i)+0.5)/parts
			ticks = append(ticks, plot.Tick{Value: at, Label: time.Unix(int64(at), 0).UTC().Format(time.TimeOnly)})
		}
		return ticks
	})
	axes.Y.Tick.Marker = plot.TickerFunc(func(from, to float64) []plot.Tick {
		// Ticks are round numbers of the unit that the labels have.
		unit := p.FieldConfig.Defaults.Unit
		size := unitSize(to, unit)
		ticks := slices.DeleteFunc(plot.DefaultTicks{}.Ticks(from/size, to/size), plot.Tick.IsMinor)
		for i := range ticks {
			ticks[i].Value *= size
			ticks[i].Label = format(ticks[i].Value, unit)
		}
		return ticks
	})
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: gridLine, Width: 0.5}
	grid.Horizontal = grid.Vertical
	axes.Add(grid)
	return axes
}

// drawLegend draws the names of results into lines at the bottom, as many as fit into three lines. It returns the height.
func drawLegend(c draw.Canvas, results []named) vg.Length {
	const lines, mark = 3, vg.Length(10)
	names := style(textSize-1.5, stdfont.WeightNormal, pale, text.XLeft, text.YCenter)
	rows := [][]int{{}}
	used := vg.Length(0)
	for i, one := range results {
		width := mark + gap + names.Width(one.name) + 3*gap
		if last := len(rows) - 1; used+width > c.Size().X && len(rows[last]) > 0 {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], i)
		used += width
	}
	rows = rows[:min(len(rows), lines)]
	for n, row := range rows {
		y, x := c.Min.Y+lineHeight*(vg.Length(len(rows)-n)-0.5), c.Min.X
		for _, i := range row {
			c.StrokeLine2(draw.LineStyle{Color: palette[i%len(palette)], Width: 2.5}, x, y, x+mark, y)
			c.FillText(names, vg.Point{X: x + mark + gap, Y: y}, results[i].name)
			x += mark + gap + names.Width(results[i].name) + 3*gap
		}
	}
	return lineHeight * vg.Length(len(rows))
}

// table draws the labels of the last moment's results that are not zero, as many as fit.
func (p panel) table(ctx context.Context, q *querier, c draw.Canvas) error {
	results, err := p.results(ctx, q.atEnd)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		c.FillText(style(textSize, stdfont.WeightNormal, pale, text.XCenter, text.YCenter), c.Center(), noData)
		return nil
	}
	var names []string
	results[0].labels.Range(func(l labels.Label) { names = append(names, l.Name) })
	y := c.Max.Y - lineHeight
	row := func(in color.Color, cells []string) {
		for i, one := range cells {
			x := c.Min.X + c.Size().X*vg.Length(i)/vg.Length(len(cells))
			c.FillText(style(textSize-1, stdfont.WeightNormal, in, text.XLeft, text.YCenter), vg.Point{X: x, Y: y}, one)
		}
		y -= lineHeight
	}
	row(pale, names)
	for _, one := range results {
		if y < c.Min.Y {
			break
		}
		var cells []string
		for _, name := range names {
			cells = append(cells, one.labels.Get(name))
		}
		row(bright, cells)
	}
	return nil
}
