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

package pictures

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/synchub-dev/synchub/hack/chart"
	"github.com/synchub-dev/synchub/test/framework/dashboards"
)

// rateInterval is the value of Grafana's variable for a data source with the usual settings: four times 15 seconds.
const rateInterval = "1m"

// Querier is the part of Prometheus' API that runs queries.
type Querier interface {
	Query(ctx context.Context, query string, at time.Time, opts ...prometheusv1.Option) (model.Value, prometheusv1.Warnings, error)
	QueryRange(ctx context.Context, query string, over prometheusv1.Range, opts ...prometheusv1.Option) (model.Value, prometheusv1.Warnings, error)
}

// Painter draws dashboards for a time and for values of their variables.
type Painter struct {
	Querier   Querier
	Range     prometheusv1.Range
	Variables map[string]string
	// Caption is the text below each picture.
	Caption string
}

// Paint returns the picture of a dashboard. An error has the title of the panel.
func (p *Painter) Paint(ctx context.Context, dashboard dashboards.Dashboard) ([]byte, error) {
	var tiles []chart.Tile
	for _, panel := range dashboard.Panels {
		at := panel.GridPos
		tile := chart.Tile{X: at.X, Y: at.Y, W: at.W, H: at.H, Title: panel.Title, Note: Note(panel)}
		var err error
		if tile.Body, err = p.body(ctx, panel); err != nil {
			return nil, fmt.Errorf("%s: the panel %q: %w", dashboard.Title, panel.Title, err)
		}
		tiles = append(tiles, tile)
	}
	return chart.Board(dashboard.Title, p.chosen(dashboard), p.Caption, tiles), nil
}

// chosen returns the values of the dashboard's variables.
func (p *Painter) chosen(dashboard dashboards.Dashboard) string {
	var chosen []string
	for _, variable := range dashboard.Templating.List {
		if variable.Definition != "" {
			chosen = append(chosen, variable.Name+": "+cmp.Or(p.Variables[variable.Name], "All"))
		}
	}
	return strings.Join(chosen, ", ")
}

// Note returns the queries of a panel, as its picture has them.
func Note(panel dashboards.Panel) string {
	var queries []string
	for _, target := range panel.Targets {
		queries = append(queries, target.Expr)
	}
	return strings.Join(queries, "\n")
}

func (p *Painter) body(ctx context.Context, panel dashboards.Panel) (chart.Body, error) {
	switch panel.Type {
	case "row":
		return nil, nil
	case "stat":
		return p.number(ctx, panel)
	case "table":
		return p.table(ctx, panel)
	case "timeseries":
		return p.lines(ctx, panel)
	default:
		return nil, fmt.Errorf("there is no picture of the type %q", panel.Type)
	}
}

// now returns the results of the panel's query at the end of the time.
func (p *Painter) now(ctx context.Context, panel dashboards.Panel) (model.Vector, error) {
	if len(panel.Targets) != 1 {
		return nil, fmt.Errorf("it has %d queries instead of one", len(panel.Targets))
	}
	result, _, err := p.Querier.Query(ctx, dashboards.Replace(panel.Targets[0].Expr, rateInterval, p.Variables), p.Range.End)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", panel.Targets[0].Expr, err)
	}
	vector, ok := result.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("%s has a %s as result instead of a vector", panel.Targets[0].Expr, result.Type())
	}
	return vector, nil
}

func (p *Painter) number(ctx context.Context, panel dashboards.Panel) (chart.Body, error) {
	results, err := p.now(ctx, panel)
	if err != nil {
		return nil, err
	}
	field := panel.FieldConfig.Defaults
	if len(results) == 0 {
		return chart.Number{Text: cmp.Or(field.NoValue, "No data"), Color: chart.Text}, nil
	}
	value := float64(results[0].Value)
	color := chart.Good
	for _, step := range field.Thresholds.Steps {
		if step.Value == nil || value >= *step.Value {
			color = map[string]chart.Color{"red": chart.Bad, "green": chart.Good}[step.Color]
		}
	}
	return chart.Number{Text: format(value, field.Unit), Color: color}, nil
}

func (p *Painter) table(ctx context.Context, panel dashboards.Panel) (chart.Body, error) {
	results, err := p.now(ctx, panel)
	if err != nil {
		return nil, err
	}
	arranged := dashboards.Columns{}
	for _, transformation := range panel.Transformations {
		arranged = transformation.Options
	}
	columns := map[string]bool{"Value": true}
	for _, one := range results {
		for label := range one.Metric {
			columns[string(label)] = true
		}
	}
	maps.DeleteFunc(columns, func(column string, _ bool) bool { return arranged.ExcludeByName[column] })
	names := slices.SortedFunc(maps.Keys(columns), func(a, b string) int {
		return cmp.Or(cmp.Compare(arranged.IndexByName[a], arranged.IndexByName[b]), cmp.Compare(a, b))
	})
	var header []string
	for _, column := range names {
		header = append(header, cmp.Or(arranged.RenameByName[column], column))
	}
	rows := chart.Table{header}
	for _, one := range results {
		var row []string
		for _, column := range names {
			cell := string(one.Metric[model.LabelName(column)])
			if column == "Value" {
				cell = format(float64(one.Value), panel.FieldConfig.Defaults.Unit)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows[1:], slices.Compare)
	return rows, nil
}

func (p *Painter) lines(ctx context.Context, panel dashboards.Panel) (chart.Body, error) {
	field := panel.FieldConfig.Defaults
	lines := chart.Lines{Stacked: field.Custom.Stacking.Mode == "normal"}
	tops, least, greatest := map[float64]float64{}, 0.0, 0.0
	for _, target := range panel.Targets {
		result, _, err := p.Querier.QueryRange(ctx, dashboards.Replace(target.Expr, rateInterval, p.Variables), p.Range)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", target.Expr, err)
		}
		matrix, ok := result.(model.Matrix)
		if !ok {
			return nil, fmt.Errorf("%s has a %s as result instead of a matrix", target.Expr, result.Type())
		}
		for _, one := range matrix {
			pieces := p.pieces(one.Values)
			if len(pieces) == 0 {
				continue
			}
			line := chart.Line{Label: legend(target.LegendFormat, one.Metric), Pieces: pieces}
			if line.Color, err = panel.ColorOf(line.Label); err != nil {
				return nil, err
			}
			lines.Lines = append(lines.Lines, line)
			for _, point := range slices.Concat(pieces...) {
				if !lines.Stacked {
					tops[point[0]] = 0
				}
				tops[point[0]] += point[1]
				least, greatest = min(least, tops[point[0]]), max(greatest, tops[point[0]])
			}
		}
	}
	lines.XTicks, lines.YTicks = p.minutes(), ticks(least, greatest, field.Unit)
	return lines, nil
}

// pieces returns the points in seconds from the start of the time, without points that are no numbers, such as a quantile of nothing.
func (p *Painter) pieces(values []model.SamplePair) (all [][][2]float64) {
	last := math.Inf(-1)
	for _, one := range values {
		if value := float64(one.Value); !math.IsNaN(value) && !math.IsInf(value, 0) {
			at := one.Timestamp.Time().Sub(p.Range.Start).Seconds()
			if at-last > 1.5*p.Range.Step.Seconds() {
				all = append(all, nil)
			}
			all[len(all)-1] = append(all[len(all)-1], [2]float64{at, value})
			last = at
		}
	}
	return all
}

// minutes returns ticks for the whole minutes before the end.
func (p *Painter) minutes() []chart.Tick {
	length := p.Range.End.Sub(p.Range.Start)
	all := []chart.Tick{{Value: length.Seconds(), Label: "now"}}
	for ago := time.Minute; ago < length; ago += time.Minute {
		all = append(all, chart.Tick{Value: (length - ago).Seconds(), Label: fmt.Sprintf("-%.0f min", ago.Minutes())})
	}
	if len(all) > 4 {
		all = slices.DeleteFunc(all, func(tick chart.Tick) bool { return math.Mod(math.Round((length.Seconds()-tick.Value)/60), 2) != 0 })
	}
	all = append(all, chart.Tick{})
	slices.Reverse(all)
	return all
}

var legendLabel = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// legend fills the labels of a result into a format such as "{{direction}} p50".
func legend(format string, labels model.Metric) string {
	return legendLabel.ReplaceAllStringFunc(format, func(match string) string {
		return string(labels[model.LabelName(legendLabel.FindStringSubmatch(match)[1])])
	})
}
