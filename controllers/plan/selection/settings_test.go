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

package selection_test

import (
	"fmt"
	"strings"
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// settingsOf returns how configs sync a ConfigMap, as text.
func settingsOf(t *testing.T, specs ...string) string {
	t.Helper()
	var configs []*edgev2alpha1.SyncerConfig
	for i, spec := range specs {
		configs = append(configs, syncerConfig(t, fmt.Sprint("c", i), spec))
	}
	selected, ok := selection.Compile(configs, nil).Match(object("configmaps a/x"))
	if !ok {
		return "not selected"
	}
	if selected.Settings == nil {
		return ""
	}
	words := []string{string(selected.Settings.Drift)}
	for _, field := range selected.Settings.IgnoredFields {
		words = append(words, field.Path.String())
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func TestSettings(t *testing.T) {
	byNamespace := func(settings string) string {
		return "namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps, " + settings + "}]}"
	}
	byName := func(settings string) string {
		return "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: a, names: [x]}], " + settings + "}]"
	}
	for name, test := range map[string]struct {
		specs []string
		want  string
	}{
		"none":                      {[]string{byNamespace("apiVersion: ''")}, ""},
		"Report":                    {[]string{byNamespace("drift: Report")}, "Report"},
		"by name":                   {[]string{byName("drift: Repair, ignoreFields: [data.a]")}, "Repair data.a"},
		"Report, then Repair":       {[]string{byNamespace("drift: Report"), byName("drift: Repair")}, "Report"},
		"Repair, then Report":       {[]string{byNamespace("drift: Repair"), byName("drift: Report")}, "Report"},
		"Repair, then nothing":      {[]string{byNamespace("drift: Repair"), byName("apiVersion: ''")}, "Repair"},
		"fields of two configs":     {[]string{byNamespace("ignoreFields: [data.b, data.a]"), byName("ignoreFields: [data.a, data.c]")}, "data.b data.a data.c"},
		"the oldest config first":   {[]string{byName("ignoreFields: [data.c]"), byNamespace("ignoreFields: [data.b]")}, "data.c data.b"},
		"the first entry first":     {[]string{byNamespace("ignoreFields: [data.b]") + "\n" + byName("ignoreFields: [data.a]")}, "data.b data.a"},
		"fields of two entries":     {[]string{byNamespace("ignoreFields: [data.b]") + "\n" + byName("drift: Report")}, "Report data.b"},
		"an invalid drift":          {[]string{byNamespace("drift: Ignore")}, "not selected"},
		"an invalid path":           {[]string{byNamespace("ignoreFields: [metadata.name]")}, "not selected"},
		"an invalid one beside it":  {[]string{byNamespace("ignoreFields: ['.a']"), byName("drift: Report")}, "Report"},
		"another object's settings": {[]string{byNamespace("apiVersion: ''"), strings.ReplaceAll(byName("drift: Report"), "[x]", "[y]")}, ""},
	} {
		if got := settingsOf(t, test.specs...); got != test.want {
			t.Errorf("%s: want %q, got %q", name, test.want, got)
		}
	}
	clusterScope := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", "clusterScope: [{group: '', resource: namespaces, objects: [x], drift: Report}]")}, nil)
	if selected, _ := clusterScope.Match(object("namespaces x")); selected.Settings == nil || selected.Settings.Drift != edgev2alpha1.DriftReport {
		t.Errorf("%+v", selected)
	}
}

// An invalid setting is a problem of its entry, which names the field. Objects that the entry may mean do not change.
func TestInvalidSettings(t *testing.T) {
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", "namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps, ignoreFields: [kind]}]}")}, nil)
	problems := matcher.Problems(selection.SyncerConfigID("c"))
	if len(problems) != 1 || problems[0].Field != "spec.namespaceScope.resources[0].ignoreFields" || !matcher.IsUnresolved(object("configmaps a/x")) {
		t.Errorf("%+v", problems)
	}
}

// Other settings have another effect, so that the objects are planned again.
func TestEqualSettings(t *testing.T) {
	all := []string{"apiVersion: ''", "drift: Report", "drift: Repair", "ignoreFields: [data.a]", "ignoreFields: [data.b]", "drift: Report, ignoreFields: [data.a]"}
	match := func(settings string) selection.Selection {
		spec := "namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps, " + settings + "}]}"
		selected, _ := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", spec)}, nil).Match(object("configmaps a/x"))
		return selected
	}
	for _, one := range all {
		for _, other := range all {
			if got := match(one).Equal(match(other)); got != (one == other) {
				t.Errorf("%q and %q: %t", one, other, got)
			}
		}
	}
}
