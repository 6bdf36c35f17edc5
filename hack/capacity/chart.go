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
	"os"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"synchub.dev/hack/plots/theme"
)

// chartClusters are the sizes of fleets in the chart.
var chartClusters = []int{100, 300, 500, 700, 1000, 2000, 3000, 5000, 7000, 10_000}

// chartHeight is the height of each of the two charts.
const chartHeight = vg.Length(300)

// curve is a line of a chart.
type curve struct {
	label  string
	color  color.Color
	dashed bool
	points plotter.XYs
}

func (c *curve) add(clusters int, value float64) {
	c.points = append(c.points, plotter.XY{X: float64(clusters), Y: value})
}

// draw writes the chart of memory and replicas.
func (p planner) draw(o options) error {
	one := curve{label: "one active replica", color: theme.Limit}
	all := curve{label: "divided, each holds all mailboxes", color: theme.Bad}
	own := curve{label: "divided, each holds its own", color: theme.Good}
	limit := curve{label: "limit of a divided replica", color: theme.Foreground, dashed: true}
	replicas := curve{label: "replicas, divided, each holds its own", color: theme.Good}
	even := curve{label: "the same, if the hash were even", color: theme.Good, dashed: true}
	shards := curve{label: "shards of kcp", color: theme.Limit}
	for _, clusters := range chartClusters {
		made, err := p.plan(o.fleet(clusters))
		if err != nil {
			return err
		}
		one.add(clusters, made.one.Memory.Limit()/gibi)
		limit.add(clusters, p.replica.Memory/gibi)
		shards.add(clusters, float64(made.kcp.Shards))
		if made.fits {
			all.add(clusters, made.all.Memory.Limit()/gibi)
			own.add(clusters, made.divided.Memory.Limit()/gibi)
			replicas.add(clusters, float64(made.divided.Replicas))
			even.add(clusters, float64(made.even.Replicas))
		}
	}
	memory, err := newChart(fmt.Sprintf("Memory of the largest replica, with %s objects for each cluster", count(float64(o.objects))), "GiB", one, all, own, limit)
	if err != nil {
		return err
	}
	memory.Y.Scale = plot.LogScale{}
	memory.Y.Min = 1
	memory.Y.Tick.Marker = ticks(1, 2, 5, 10, 20, 50, 100, 200, 500)
	number, err := newChart("Replicas of the hub, and shards of kcp", "number", replicas, even, shards)
	if err != nil {
		return err
	}
	number.Y.Min = 0
	number.Y.Tick.Marker = ticks(0, 5, 10, 15, 20, 25, 30, 40, 50)
	image, err := theme.SVG(chartHeight, memory, number)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.chart, image, 0o644); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}

func newChart(title, unit string, curves ...curve) (*plot.Plot, error) {
	p := plot.New()
	theme.Apply(p)
	p.Title.Text = title
	p.X.Label.Text = "clusters"
	p.Y.Label.Text = unit
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = ticks(100, 200, 500, 1000, 2000, 5000, 10_000)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.Padding = 10, 4
	p.Legend.TextStyle.Font = theme.Font(theme.TextSize, font.WeightNormal)
	p.Legend.TextStyle.Color = theme.Foreground
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: theme.Grid, Width: 1}
	grid.Horizontal = grid.Vertical
	p.Add(grid)
	for _, c := range curves {
		if len(c.points) == 0 {
			continue
		}
		line, err := plotter.NewLine(c.points)
		if err != nil {
			return nil, fmt.Errorf("the line %q: %w", c.label, err)
		}
		line.LineStyle = draw.LineStyle{Color: c.color, Width: 2}
		if c.dashed {
			line.Dashes = []vg.Length{4, 4}
		}
		p.Add(line)
		p.Legend.Add(c.label, line)
	}
	return p, nil
}

func ticks(values ...float64) plot.ConstantTicks {
	marks := make(plot.ConstantTicks, len(values))
	for i, value := range values {
		marks[i] = plot.Tick{Value: value, Label: count(value)}
	}
	return marks
}
