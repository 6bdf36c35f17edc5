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

package explain_test

import (
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
)

// The location on the target is known before the target is read.
func TestTargetRef(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testing.T, *explain.Facts)
		want   string
	}{
		"the same":           {func(*testing.T, *explain.Facts) {}, "example.dev/v1 widgets Widget shop/web"},
		"another name":       {publish("naming: {name: '{{ .SyncTarget }}-{{ .Object.metadata.name }}'}", true), "example.dev/v1 widgets Widget shop/florin-web"},
		"no object":          {func(_ *testing.T, f *explain.Facts) { f.Object.Value = nil }, "example.dev/v1 widgets Widget shop/web"},
		"no object to name":  {func(t *testing.T, f *explain.Facts) { publish("naming: {name: a}", true)(t, f); f.Object.Value = nil }, "its name there is made of the object in the mailbox, which is not there"},
		"another resource":   {publish("", true), "example.dev/v1 widgets Widget shop/web"},
		"a conversion of it": {scope("namespaceScope: {namespaces: [shop], resources: [{group: example.dev, resource: widgets}]}\nconversions: [{upstream: {group: example.dev, version: v1, kind: Widget}, downstream: {group: example.dev, version: v2, kind: Gadget}}]"), "example.dev/v2  Gadget shop/web"},
		"what came up": {func(t *testing.T, f *explain.Facts) {
			f.Target.Value.SetAnnotations(nil)
			f.Target.Value.SetName("below")
			f.Object.Value = upsynced(t, f.Target.Value, "stall")
		}, "example.dev/v1 widgets Widget shop/below"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := inStep(t)
			test.change(t, facts)
			place, err := facts.TargetRef()
			got := strings.Join([]string{place.GroupVersion().String(), place.Resource, place.Kind, place.String()}, " ")
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
