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

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/test/framework/dashboards"
)

// Each query is understood, and uses metrics that are documented; each panel has a place of its own.
func TestDashboards(t *testing.T) {
	_, chartDir, root := paths(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := dashboards.Read(filepath.Join(chartDir, "files", "dashboards"))
	if err != nil || len(all) != 3 {
		t.Fatalf("%d dashboards were read: %v", len(all), err)
	}
	metric := regexp.MustCompile(`\bsynchub_\w+`)
	var rules []map[string]string
	for _, dashboard := range all {
		checkPlaces(t, dashboard)
		checkDescriptions(t, dashboard)
		checkVariables(t, dashboard)
		checkLinks(t, dashboard)
		checkColors(t, dashboard)
		for _, expr := range dashboard.Queries(map[string]string{"inventory": "i", "name": "florin"}) {
			rules = append(rules, map[string]string{"record": fmt.Sprint("panel:", len(rules)), "expr": expr})
			if !strings.Contains(expr, `{job=~".*", namespace=~".*"`) {
				t.Errorf("%s would add up several hubs: %s", dashboard.Title, expr)
			}
			for _, name := range metric.FindAllString(expr, -1) {
				if !strings.Contains(string(page), "`"+strings.TrimSuffix(name, "_bucket")+"`") {
					t.Errorf("%s uses %s, which docs/metrics.md does not list", dashboard.Title, name)
				}
			}
		}
	}
	content, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "promtool"), "check", "rules", file).CombinedOutput(); err != nil || len(rules) < 40 {
		t.Errorf("of %d queries: %v\n%s", len(rules), err, output)
	}
}

// checkPlaces checks that no panel covers another.
func checkPlaces(t *testing.T, dashboard dashboards.Dashboard) {
	t.Helper()
	taken := map[string]string{}
	for _, panel := range dashboard.Panels {
		at := panel.GridPos
		for cell := range at.W * at.H {
			place := fmt.Sprint(at.X+cell%at.W, "/", at.Y+cell/at.W)
			if other, ok := taken[place]; ok || at.X+at.W > 24 {
				t.Errorf("%s: %q is where %q is, or beyond the edge", dashboard.Title, panel.Title, other)
			}
			taken[place] = panel.Title
		}
	}
}

// checkDescriptions checks that each panel has a short description.
func checkDescriptions(t *testing.T, dashboard dashboards.Dashboard) {
	t.Helper()
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && (!strings.HasSuffix(panel.Description, ".") || len(panel.Description) > 160) {
			t.Errorf("%s: %q has the description %q", dashboard.Title, panel.Title, panel.Description)
		}
	}
}

// checkVariables checks that a user can choose one of several hubs.
func checkVariables(t *testing.T, dashboard dashboards.Dashboard) {
	t.Helper()
	for name, definition := range map[string]string{
		"job":       "label_values(synchub_build_info, job)",
		"namespace": `label_values(synchub_build_info{job=~"$job"}, namespace)`,
	} {
		want := dashboards.Variable{Name: name, Definition: definition}
		if !slices.Contains(dashboard.Templating.List, want) {
			t.Errorf("%s does not have the variable %+v", dashboard.Title, want)
		}
	}
}

// checkColors checks that the answer No is red.
func checkColors(t *testing.T, dashboard dashboards.Dashboard) {
	t.Helper()
	for _, panel := range dashboard.Panels {
		field := panel.FieldConfig.Defaults
		if field.Unit == "bool_yes_no" && (len(field.Thresholds.Steps) != 2 || field.Thresholds.Steps[0].Color != "red") {
			t.Errorf("%s: %q has the thresholds %v", dashboard.Title, panel.Title, field.Thresholds.Steps)
		}
	}
}

// ofSyncTargets matches a query with a row, or a line, for each SyncTarget.
var ofSyncTargets = regexp.MustCompile(`\bby \((?:\w+, )*name, inventory\b`)

// checkLinks checks that each row of a SyncTarget has a link to it, with the chosen hubs and the chosen time.
func checkLinks(t *testing.T, dashboard dashboards.Dashboard) {
	t.Helper()
	found := 0
	for _, panel := range dashboard.Panels {
		links, err := panel.Links()
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range panel.Targets {
			if !ofSyncTargets.MatchString(target.Expr) {
				continue
			}
			found++
			if !slices.ContainsFunc(links, isLinkToSyncTarget) {
				t.Errorf("%s: the rows of %q have no link to their SyncTargets: %v", dashboard.Title, panel.Title, links)
			}
		}
	}
	if dashboard.UID == "synchub-fleet" && found < 4 {
		t.Errorf("%s: only %d queries have rows of SyncTargets", dashboard.Title, found)
	}
}

// isLinkToSyncTarget reports whether a link opens the dashboard of the SyncTarget in its row.
func isLinkToSyncTarget(link dashboards.Link) bool {
	variables, ok := strings.CutPrefix(link.URL, "/d/synchub-target?")
	if !ok {
		return false
	}
	given := strings.Split(variables, "&")
	for _, want := range []string{"${job:queryparam}", "${namespace:queryparam}", "${datasource:queryparam}", "${__url_time_range}"} {
		if !slices.Contains(given, want) {
			return false
		}
	}
	return slices.ContainsFunc([]string{"${__data.fields.", "${__field.labels."}, func(of string) bool {
		return slices.Contains(given, "var-inventory="+of+"inventory}") && slices.Contains(given, "var-name="+of+"name}")
	})
}

// The ConfigMaps hold the files as they are.
func TestDashboardsAreRendered(t *testing.T) {
	_, chartDir, _ := paths(t)
	rendered := objects(t, "--set", "metrics.dashboards.enabled=true")
	for _, name := range []string{"fleet", "target", "hub"} {
		var file, shipped any
		content, err := os.ReadFile(filepath.Join(chartDir, "files", "dashboards", "synchub-"+name+".json"))
		if err != nil || json.Unmarshal(content, &file) != nil {
			t.Fatalf("%s: %v", name, err)
		}
		configMap := rendered["ConfigMap/synchub-"+name+"-dashboard"]
		if configMap == nil {
			t.Fatalf("%s was not rendered", name)
		}
		if err := json.Unmarshal([]byte(nested(t, configMap, "data", "synchub-"+name+".json")), &shipped); err != nil || fmt.Sprint(file) != fmt.Sprint(shipped) {
			t.Errorf("%s was changed: %v", name, err)
		}
		if configMap.GetLabels()["grafana_dashboard"] != "1" {
			t.Errorf("%s has the labels %v", name, configMap.GetLabels())
		}
	}
}
