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

package ledger

import (
	"slices"
	"strings"
	"testing"
)

// A namespace with objects of the hub stays in the entry as long as the entry has resources.
func TestRecordNamespaces(t *testing.T) {
	split := func(text string) []string {
		if text == "" {
			return nil
		}
		return strings.Split(text, ",")
	}
	for name, test := range map[string]struct {
		before     string
		placed     bool
		now        string
		want, left string
	}{
		"the whole cluster from the start":     {placed: true},
		"namespaces from the start":            {now: "a,b", want: "a,b"},
		"the same":                             {before: "a,b", placed: true, now: "b,a", want: "a,b"},
		"one more":                             {before: "a", placed: true, now: "a,b", want: "a,b"},
		"one less":                             {before: "a,b", placed: true, now: "a", want: "a,b", left: "b"},
		"one less, and nothing is left":        {before: "a,b", now: "a", want: "a"},
		"no longer the whole cluster":          {placed: true, now: "a", want: "*,a", left: "*"},
		"another one than the whole cluster":   {before: "*,a", placed: true, now: "b", want: "*,a,b", left: "*,a"},
		"the whole cluster again":              {before: "*,a", placed: true},
		"the whole cluster, with nothing left": {},
	} {
		t.Run(name, func(t *testing.T) {
			entry := Entry{Namespaces: split(test.before)}
			if test.placed {
				entry.Resources = []Resource{{}}
			}
			entry.RecordNamespaces(split(test.now))
			if left := entry.FormerNamespaces(split(test.now)); !slices.Equal(entry.Namespaces, split(test.want)) || !slices.Equal(left, split(test.left)) {
				t.Errorf("want %s, left %s, got %v, left %v", test.want, test.left, entry.Namespaces, left)
			}
		})
	}
}
