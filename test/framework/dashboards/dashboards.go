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
	Title  string  `json:"title"`
	Panels []Panel `json:"panels"`
}

// Panel is a panel with its place and its queries.
type Panel struct {
	Title   string                   `json:"title"`
	GridPos struct{ X, Y, W, H int } `json:"gridPos"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
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

// Queries returns the queries of all panels, with Grafana's variables replaced.
func (d *Dashboard) Queries(variables map[string]string) (queries []string) {
	replace := []string{"$__rate_interval", "5m"}
	for name, value := range variables {
		replace = append(replace, "$"+name, value)
	}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, strings.NewReplacer(replace...).Replace(target.Expr))
		}
	}
	return queries
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
