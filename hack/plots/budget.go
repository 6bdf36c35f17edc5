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

	"synchub.dev/hack/plots/theme"
)

const percent = 100

// budgetChart draws each quantity as a part of its limit.
func budgetChart(title string, lines []selected) (*plot.Plot, error) {
	texts, values, err := shares(lines)
	if err != nil {
		return nil, err
	}
	axis := scale{greatest: percent, step: 20, unit: " %", caption: "of the limit"}
	for _, share := range values {
		axis.greatest = max(axis.greatest, share)
	}
	p := newPlot(title, texts, axis)
	bars, err := plotter.NewBarChart(values, 11)
	if err != nil {
		return nil, err
	}
	bars.Horizontal = true
	// A bar chart counts upwards from XMin, and the first line is at the top: shares are in reverse order.
	bars.XMin = height(len(lines) - 1)
	bars.Color = theme.Good
	bars.LineStyle.Width = 0
	limit, err := plotter.NewLine(plotter.XYs{{X: percent, Y: p.Y.Min}, {X: percent, Y: p.Y.Max}})
	if err != nil {
		return nil, err
	}
	limit.LineStyle = draw.LineStyle{Color: theme.Limit, Width: vg.Length(2.5)}
	p.Add(bars, limit)
	return p, nil
}

// shares returns the lines with their numbers, and their parts of the limits in percent, the last one first.
func shares(lines []selected) (texts []labelled, values plotter.Values, err error) {
	for _, l := range lines {
		if l.row == nil || l.row.Limit == nil || l.row.Limit.Unit != l.row.Result.Unit {
			return nil, nil, fmt.Errorf("the line %q has no limit of the same unit", l.label)
		}
		result, limit := l.row.Result, *l.row.Limit
		number := fmt.Sprintf("%s of %s %s", short(result.Value), short(limit.Value), result.Unit)
		texts = append(texts, labelled{label: l.label, number: number})
		values = append(plotter.Values{result.Value / limit.Value * percent}, values...)
	}
	return texts, values, nil
}

func short(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
