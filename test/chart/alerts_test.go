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
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/test/fixtures"
)

const alertTests = "testdata/alerts-test.yaml"

// alertRules is the form of files/alerts.yaml.
type alertRules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

// promtool expects each alert to fire and clear at the times in testdata.
func TestAlerts(t *testing.T) {
	_, _, root := paths(t)
	promtool := filepath.Join(root, "bin", "promtool")
	if _, err := os.Stat(promtool); err != nil {
		t.Fatalf("promtool is not built, run `make tools`: %v", err)
	}
	if output, err := exec.CommandContext(t.Context(), promtool, "test", "rules", alertTests).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// Each alert has a runbook, is tested to fire and to clear, and uses metrics that are documented.
func TestAlertsAreDocumented(t *testing.T) {
	_, chartDir, root := paths(t)
	read := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	runbooks, metrics, tests := read(filepath.Join(root, "docs", "runbooks.md")), read(filepath.Join(root, "docs", "metrics.md")), read(alertTests)
	metric := regexp.MustCompile(`\b(synchub|leader_election)_\w+`)
	count := 0
	for _, group := range fixtures.DecodeFile[alertRules](t, filepath.Join(chartDir, "files", "alerts.yaml")).Groups {
		for _, rule := range group.Rules {
			count++
			if !strings.Contains(runbooks, "\n## "+rule.Alert+"\n") || !strings.HasSuffix(rule.Annotations["runbook_url"], "/docs/runbooks.md#"+strings.ToLower(rule.Alert)) {
				t.Errorf("%s has no runbook: %s", rule.Alert, rule.Annotations["runbook_url"])
			}
			for _, name := range metric.FindAllString(rule.Expr, -1) {
				if !strings.Contains(metrics, "`"+name+"`") {
					t.Errorf("%s uses %s, which docs/metrics.md does not list", rule.Alert, name)
				}
			}
			fires, clears := "alertname: "+rule.Alert+"\n        exp_alerts:", "alertname: "+rule.Alert+"}"
			if !strings.Contains(tests, fires) || !strings.Contains(tests, clears) {
				t.Errorf("%s does not test that %s fires and clears", alertTests, rule.Alert)
			}
		}
	}
	if sections := strings.Count(runbooks, "\n## "); count == 0 || sections != count {
		t.Errorf("%d alerts have %d runbooks", count, sections)
	}
}
