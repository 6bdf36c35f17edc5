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
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	// documented matches a row of a table in docs/metrics.md.
	documented = regexp.MustCompile("(?m)^\\| `(synchub_\\w+)` \\| (\\w+) \\| ([^|]*) \\| [^|]+ \\|$")
	// described matches a description as client_golang prints it.
	described = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: "([^"]+)", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)
)

// registered returns the kind and labels of all metrics of the hub, by name.
func registered(t *testing.T) map[string]string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	all := map[string]string{}
	for _, collector := range collectors() {
		if err := registry.Register(collector); err != nil {
			t.Error(err)
		}
		descriptions := make(chan *prometheus.Desc, 100)
		collector.Describe(descriptions)
		close(descriptions)
		for description := range descriptions {
			parts := described.FindStringSubmatch(description.String())
			if parts == nil {
				t.Fatalf("cannot read %s", description)
			}
			labels := "none"
			if parts[3] != "" {
				// The page mentions once that name and inventory accompany the UID.
				labels = "`" + strings.ReplaceAll(strings.Replace(parts[3], "sync_target,name,inventory", "sync_target", 1), ",", "`, `") + "`"
			}
			all[parts[1]] = fmt.Sprintf("%s by %s", kindOf(collector, parts[1]), labels)
		}
	}
	return all
}

// kindOf returns the kind of a metric. For metrics that are read at each scrape, the name determines the kind; the tests of
// those metrics check that.
func kindOf(collector prometheus.Collector, name string) string {
	switch collector.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

func TestThePageListsTheMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	onPage, inHub := map[string]string{}, registered(t)
	for _, row := range documented.FindAllStringSubmatch(string(page), -1) {
		if _, twice := onPage[row[1]]; twice {
			t.Errorf("%s is listed twice", row[1])
		}
		onPage[row[1]] = fmt.Sprintf("%s by %s", row[2], row[3])
	}
	if len(inHub) < 10 {
		t.Errorf("the hub registers only %v", slices.Sorted(maps.Keys(inHub)))
	}
	for name, metric := range inHub {
		if onPage[name] != metric {
			t.Errorf("%s is a %s, the page has %q", name, metric, onPage[name])
		}
	}
	for name := range onPage {
		if _, ok := inHub[name]; !ok {
			t.Errorf("the page lists %s, which the hub does not register", name)
		}
	}
}

// No metric has a label with names of objects, whose number is unbounded.
func TestLabelsAreBounded(t *testing.T) {
	bounded := []string{"sync_target", "resource", "direction", "action", "cause", "result", "reason", "destination", "class", "verb", "code", "endpoint", "state", "condition", "status", "version", "commit", "go_version", "none"}
	for name, metric := range registered(t) {
		_, labels, _ := strings.Cut(metric, " by ")
		for label := range strings.SplitSeq(labels, ", ") {
			label = strings.Trim(label, "`")
			if !slices.Contains(bounded, label) {
				t.Errorf("%s is labelled by %s", name, label)
			}
		}
	}
}
