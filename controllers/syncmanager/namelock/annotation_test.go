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

package namelock

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFreeNames(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		states     map[string]crdStatus
		want       string
		changed    bool
	}{
		"no annotation":             {states: map[string]crdStatus{"gizmos.acme.io": crdGone}},
		"kept for what is gone":     {`{"gizmos.acme.io":{"c":true}}`, map[string]crdStatus{"gizmos.acme.io": crdGone}, `{"gizmos.acme.io":{"c":true,"e":"2000-01-01T00:00:00Z"}}`, true},
		"kept for what was refused": {`{"a.b":{"n":"x"},"gizmos.acme.io":{"c":true}}`, map[string]crdStatus{"gizmos.acme.io": crdRefused}, `{"a.b":{"n":"x"}}`, true},
		"kept for what serves":      {annotation: `{"gizmos.acme.io":{"c":true}}`, states: map[string]crdStatus{"gizmos.acme.io": crdServing}},
		"of what is being made":     {annotation: `{"gizmos.acme.io":{"c":true,"e":"2026-01-01T00:00:00Z"}}`, states: map[string]crdStatus{"gizmos.acme.io": crdGone}},
		"of a binding":              {annotation: `{"gizmos.acme.io":{"n":"mailbox"}}`, states: map[string]crdStatus{"gizmos.acme.io": crdGone}},
		"of others":                 {annotation: `{"others.acme.io":{"c":true}}`, states: map[string]crdStatus{"gizmos.acme.io": crdGone}},
		"unknown fields":            {`{"a.b":{"n":"x","z":[1]},"gizmos.acme.io":{"c":true,"y":"?"}}`, map[string]crdStatus{"gizmos.acme.io": crdGone}, `{"a.b":{"n":"x","z":[1]},"gizmos.acme.io":{"c":true,"e":"2000-01-01T00:00:00Z","y":"?"}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			freed, changed, err := freeNames(test.annotation, test.states)
			if err != nil || changed != test.changed || freed != test.want {
				t.Errorf("free: %q, %t, %v; want %q, %t", freed, changed, err, test.want, test.changed)
			}
		})
	}
}

func TestFreeNamesLeavesUnknownNotes(t *testing.T) {
	for _, annotation := range []string{`{`, `[]`, `{"gizmos.acme.io":true}`} {
		if freed, changed, err := freeNames(annotation, map[string]crdStatus{"gizmos.acme.io": crdGone}); err == nil || changed {
			t.Errorf("free(%q): %q, %t, %v; want an error", annotation, freed, changed, err)
		}
	}
}

func TestCRDState(t *testing.T) {
	definition := func(established, accepted string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Established", "status": established}, map[string]any{"type": "NamesAccepted", "status": accepted},
		}}}}
	}
	for name, test := range map[string]struct {
		definition *unstructured.Unstructured
		want       crdStatus
	}{
		"none":                      {nil, crdGone},
		"established":               {definition("True", "True"), crdServing},
		"established, now refused":  {definition("True", "False"), crdServing},
		"refused":                   {definition("False", "False"), crdRefused},
		"not yet looked at by kcp":  {&unstructured.Unstructured{Object: map[string]any{}}, crdServing},
		"accepted, not established": {definition("False", "True"), crdServing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := crdState(test.definition, test.definition != nil); got != test.want {
				t.Errorf("stateOf: %s, want %s", got, test.want)
			}
		})
	}
}

// For any annotation, freeNames terminates and changes only the names that it is given.
func FuzzFreeNames(f *testing.F) {
	for _, annotation := range []string{"", "null", "[]", `{"a.b":null}`, `{"a.b":{"c":true},"c.d":{"c":true}}`, `{"a.b":{"c":true,"e":"2026-01-01T00:00:00Z"}}`} {
		f.Add(annotation, true)
		f.Add(annotation, false)
	}
	f.Fuzz(func(t *testing.T, annotation string, isGone bool) {
		asked := map[string]crdStatus{"a.b": crdRefused, "serving.b": crdServing}
		if isGone {
			asked["a.b"] = crdGone
		}
		freed, changed, err := freeNames(annotation, asked)
		if err != nil || !changed {
			if freed != "" {
				t.Errorf("%q became %q without a change: %v", annotation, freed, err)
			}
			return
		}
		if again, more, err := freeNames(freed, asked); more || err != nil {
			t.Errorf("%q became %q at first and %q then: %v", annotation, freed, again, err)
		}
		others := func(text string) map[string]any {
			notes := map[string]any{}
			if err := json.Unmarshal([]byte(text), &notes); err != nil {
				t.Fatalf("%q became %q: %v", annotation, freed, err)
			}
			delete(notes, "a.b")
			return notes
		}
		if !reflect.DeepEqual(others(annotation), others(freed)) {
			t.Errorf("records of other names changed: %q became %q", annotation, freed)
		}
	})
}
