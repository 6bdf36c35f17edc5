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

package scenario

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

func TestGroupByEnv(t *testing.T) {
	// Capitals need fresh servers, and names with a dash need an environment without targets.
	for given, want := range map[string][2]string{
		"":          {"", ""},
		"a":         {"a", "a"},
		"a b":       {"a b", "a b"},
		"B":         {"B", "B"},
		"a b C d":   {"a b|C d", "a b C d"},
		"a B C d e": {"a|B|C d e", "a B C d e"},
		"a -b":      {"a|-b", "a|-b"},
		"-a b":      {"-a|b", "-a|b"},
		"a B -c -d": {"a|B|-c|-d", "a B|-c|-d"},
		"a -b C d":  {"a|-b|C d", "a|-b|C d"},
	} {
		var scenarios []Scenario
		for name := range strings.FieldsSeq(given) {
			scenarios = append(scenarios, Scenario{Name: name, FreshServers: name == strings.ToUpper(name), NoTargets: strings.HasPrefix(name, "-")})
		}
		for i, few := range []bool{false, true} {
			var parts []string
			for _, part := range GroupByEnv(scenarios, few) {
				var names []string
				for _, one := range part {
					names = append(names, one.Name)
				}
				parts = append(parts, strings.Join(names, " "))
			}
			if got := strings.Join(parts, "|"); got != want[i] {
				t.Errorf("%q, few objects %t: run as %q, want %q", given, few, got, want[i])
			}
		}
	}
}

func TestCostRows(t *testing.T) {
	costs := newCostRows(500, 10)
	costs.add(directColumn, runCost{elapsed: 2 * time.Second, cpu: time.Second, servers: 4 * time.Second})
	costs.add(hubColumn, runCost{elapsed: 3 * time.Second, cpu: 2 * time.Second, servers: 5 * time.Second})
	for i, want := range []report.Row{{Hub: []float64{3}, Direct: []float64{2}}, {Hub: []float64{4}, Direct: []float64{2}}, {Hub: []float64{10}, Direct: []float64{8}}} {
		row := costs.rows()[i]
		if !reflect.DeepEqual(row.Hub, want.Hub) || !reflect.DeepEqual(row.Direct, want.Direct) {
			t.Errorf("%s: hub %v, direct %v; want %v, %v", row.What, row.Hub, row.Direct, want.Hub, want.Direct)
		}
	}

	unknown := newCostRows(500, 10)
	unknown.add(directColumn, runCost{elapsed: time.Second, cpu: time.Second})
	unknown.add(hubColumn, runCost{elapsed: time.Second, cpu: time.Second})
	if rows := unknown.rows(); len(rows) != 2 {
		t.Errorf("%d rows without the CPU time of servers, want 2", len(rows))
	}
}

func TestAsserted(t *testing.T) {
	for name, run := range map[string]func(gomega.Gomega){
		"at once": func(g gomega.Gomega) { g.Expect(1).To(gomega.Equal(2), "the first") },
		"elsewhere": func(g gomega.Gomega) {
			var group sync.WaitGroup
			group.Go(func() { g.Expect(1).To(gomega.Equal(2), "the first") })
			group.Wait()
			g.Expect(3).To(gomega.Equal(4), "the second")
		},
	} {
		err := asserted(func(g gomega.Gomega) {
			run(g)
			t.Errorf("%s: it went on", name)
		})
		if err == nil || !strings.Contains(err.Error(), "the first") {
			t.Errorf("%s: want the first assertion, got %v", name, err)
		}
	}
	if err := asserted(func(g gomega.Gomega) { g.Expect(1).To(gomega.Equal(1)) }); err != nil {
		t.Errorf("nothing failed: %v", err)
	}
}

// The periodic check of a target's identity is no read, but the same object read for a copy is.
func TestReadsAndWrites(t *testing.T) {
	reads, writes := readsAndWrites(map[installation.Request]float64{
		{Destination: "target", Class: "background", Verb: "get", Resource: "none"}:            1,
		{Destination: "target", Class: "background", Verb: "get", Resource: "namespaces"}:      1,
		{Destination: "target", Class: "background", Verb: "get", Resource: "logicalclusters"}: 1,
		{Destination: "target", Class: "extra", Verb: "get", Resource: "namespaces"}:           2,
		{Destination: "mailbox", Class: "background", Verb: "get", Resource: "namespaces"}:     3,
		{Destination: "target", Class: "object", Verb: "list", Resource: "configmaps"}:         1,
		{Destination: "target", Class: "object", Verb: "apply", Resource: "configmaps"}:        4,
	})
	wantReads := map[string]float64{"target extra get namespaces": 2, "mailbox background get namespaces": 3}
	if wantWrites := map[string]float64{"target object apply configmaps": 4}; !reflect.DeepEqual(reads, wantReads) || !reflect.DeepEqual(writes, wantWrites) {
		t.Errorf("it read %v and wrote %v", reads, writes)
	}
}
