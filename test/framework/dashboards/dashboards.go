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

package dashboards

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Dashboard has the fields of a dashboard of Grafana that tests read.
type Dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []Panel `json:"panels"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Variable is a variable that a user of the dashboard chooses.
type Variable struct {
	Name string `json:"name"`
	// Definition is the query of its values.
	Definition string `json:"definition"`
}

// Panel is a panel with its place and its queries.
type Panel struct {
	Title string `json:"title"`
	// Description is what Grafana shows beside the title on request.
	Description string                   `json:"description"`
	Type        string                   `json:"type"`
	GridPos     struct{ X, Y, W, H int } `json:"gridPos"`
	Targets     []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
	FieldConfig struct {
		Defaults  Field `json:"defaults"`
		Overrides []struct {
			Matcher struct {
				ID      string `json:"id"`
				Options any    `json:"options"`
			} `json:"matcher"`
			Properties []struct {
				ID    string          `json:"id"`
				Value json.RawMessage `json:"value"`
			} `json:"properties"`
		} `json:"overrides"`
	} `json:"fieldConfig"`
	Transformations []struct {
		Options Columns `json:"options"`
	} `json:"transformations"`
}

// Columns are the options of the transformation that arranges the columns of a table.
type Columns struct {
	ExcludeByName map[string]bool   `json:"excludeByName"`
	IndexByName   map[string]int    `json:"indexByName"`
	RenameByName  map[string]string `json:"renameByName"`
}

// Field is how the values of a panel are shown.
type Field struct {
	Unit string `json:"unit"`
	// NoValue is shown instead of "No data".
	NoValue    string `json:"noValue"`
	Links      []Link `json:"links"`
	Thresholds struct {
		Steps []Threshold `json:"steps"`
	} `json:"thresholds"`
	Custom struct {
		Stacking struct {
			Mode string `json:"mode"`
		} `json:"stacking"`
	} `json:"custom"`
}

// Threshold gives a color to values from Value on. The first of a panel has no value.
type Threshold struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Link is a link of a value in a panel.
type Link struct {
	URL string `json:"url"`
}

// ColorOf returns the fixed color of the series with a name, or "".
func (p *Panel) ColorOf(name string) (string, error) {
	for _, override := range p.FieldConfig.Overrides {
		if override.Matcher.ID != "byName" || override.Matcher.Options != name {
			continue
		}
		for _, property := range override.Properties {
			if property.ID != "color" {
				continue
			}
			var color struct {
				FixedColor string `json:"fixedColor"`
			}
			if err := json.Unmarshal(property.Value, &color); err != nil {
				return "", fmt.Errorf("the color of %s: %w", name, err)
			}
			return color.FixedColor, nil
		}
	}
	return "", nil
}

// Links returns the links of all values, and of the values of one column.
func (p *Panel) Links() ([]Link, error) {
	all := p.FieldConfig.Defaults.Links
	for _, override := range p.FieldConfig.Overrides {
		for _, property := range override.Properties {
			if property.ID != "links" {
				continue
			}
			var links []Link
			if err := json.Unmarshal(property.Value, &links); err != nil {
				return nil, fmt.Errorf("the links of %s: %w", p.Title, err)
			}
			all = append(all, links...)
		}
	}
	return all, nil
}

// Read returns the dashboards in a directory.
func Read(directory string) (all []Dashboard, err error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var dashboard Dashboard
		if err := json.Unmarshal(content, &dashboard); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, dashboard)
	}
	return all, nil
}

// Queries returns the queries of all panels, with Grafana's variables replaced. The variables job and namespace match all hubs.
func (d *Dashboard) Queries(variables map[string]string) (queries []string) {
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, Replace(target.Expr, "5m", variables))
		}
	}
	return queries
}

// Replace returns a query with Grafana's variables replaced. The variables job and namespace match all hubs.
func Replace(query, rateInterval string, variables map[string]string) string {
	replace := []string{"$__rate_interval", rateInterval, "$namespace", ".*", "$job", ".*"}
	for name, value := range variables {
		replace = append(replace, "$"+name, value)
	}
	return strings.NewReplacer(replace...).Replace(query)
}

// Empty returns the queries without a result for samples of a hub, which stay as they are for ten minutes. Prometheus' own
// engine runs them: promtool is asked to expect no result of each query, and fails for queries with a result.
func Empty(ctx context.Context, promtool, directory string, samples map[string]float64, queries []string) ([]string, error) {
	var series, tests []map[string]any
	for sample, value := range samples {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			continue
		}
		name, labels, _ := strings.Cut(strings.TrimSuffix(sample, "}"), "{")
		if labels != "" {
			labels = "," + labels
		}
		series = append(series, map[string]any{
			"series": name + `{job="hub",instance="one"` + labels + "}", "values": strconv.FormatFloat(value, 'f', -1, 64) + "x10",
		})
	}
	for _, query := range queries {
		tests = append(tests, map[string]any{"expr": query, "eval_time": "10m"})
	}
	content, err := yaml.Marshal(map[string]any{"evaluation_interval": "1m", "tests": []any{map[string]any{
		"interval": "1m", "input_series": series, "promql_expr_test": tests,
	}}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(directory, "queries.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return nil, err
	}
	output, _ := exec.CommandContext(ctx, promtool, "test", "rules", file).CombinedOutput()
	if !strings.Contains(string(output), "FAILED") {
		return nil, fmt.Errorf("no query gives a result: %s", output)
	}
	var empty []string
	for _, query := range queries {
		if !strings.Contains(string(output), fmt.Sprintf("expr: %q, time: 10m", query)) {
			empty = append(empty, query)
		}
	}
	return empty, nil
}
