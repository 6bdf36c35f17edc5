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

func TestFree(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		states     map[string]state
		want       string
		changed    bool
	}{
		"no annotation":             {states: map[string]state{"gizmos.acme.io": gone}},
		"kept for what is gone":     {`{"gizmos.acme.io":{"c":true}}`, map[string]state{"gizmos.acme.io": gone}, `{"gizmos.acme.io":{"c":true,"e":"2000-01-01T00:00:00Z"}}`, true},
		"kept for what was refused": {`{"a.b":{"n":"x"},"gizmos.acme.io":{"c":true}}`, map[string]state{"gizmos.acme.io": refused}, `{"a.b":{"n":"x"}}`, true},
		"kept for what serves":      {annotation: `{"gizmos.acme.io":{"c":true}}`, states: map[string]state{"gizmos.acme.io": serving}},
		"of what is being made":     {annotation: `{"gizmos.acme.io":{"c":true,"e":"2026-01-01T00:00:00Z"}}`, states: map[string]state{"gizmos.acme.io": gone}},
		"of a binding":              {annotation: `{"gizmos.acme.io":{"n":"mailbox"}}`, states: map[string]state{"gizmos.acme.io": gone}},
		"of others":                 {annotation: `{"others.acme.io":{"c":true}}`, states: map[string]state{"gizmos.acme.io": gone}},
		"unknown fields":            {`{"a.b":{"n":"x","z":[1]},"gizmos.acme.io":{"c":true,"y":"?"}}`, map[string]state{"gizmos.acme.io": gone}, `{"a.b":{"n":"x","z":[1]},"gizmos.acme.io":{"c":true,"e":"2000-01-01T00:00:00Z","y":"?"}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			freed, changed, err := free(test.annotation, test.states)
			if err != nil || changed != test.changed || freed != test.want {
				t.Errorf("free: %q, %t, %v; want %q, %t", freed, changed, err, test.want, test.changed)
			}
		})
	}
}

func TestFreeLeavesWhatItCannotRead(t *testing.T) {
	for _, annotation := range []string{`{`, `[]`, `{"gizmos.acme.io":true}`} {
		if freed, changed, err := free(annotation, map[string]state{"gizmos.acme.io": gone}); err == nil || changed {
			t.Errorf("free(%q): %q, %t, %v; want an error", annotation, freed, changed, err)
		}
	}
}

func TestStateOf(t *testing.T) {
	definition := func(established, accepted string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Established", "status": established}, map[string]any{"type": "NamesAccepted", "status": accepted},
		}}}}
	}
	for name, test := range map[string]struct {
		definition *unstructured.Unstructured
		want       state
	}{
		"none":                      {nil, gone},
		"established":               {definition("True", "True"), serving},
		"established, now refused":  {definition("True", "False"), serving},
		"refused":                   {definition("False", "False"), refused},
		"not yet looked at by kcp":  {&unstructured.Unstructured{Object: map[string]any{}}, serving},
		"accepted, not established": {definition("False", "True"), serving},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(test.definition, test.definition != nil); got != test.want {
				t.Errorf("stateOf: %s, want %s", got, test.want)
			}
		})
	}
}

// Whatever the annotation says, freeing ends, and touches no name but those that it is asked about.
func FuzzFree(f *testing.F) {
	for _, annotation := range []string{"", "null", "[]", `{"a.b":null}`, `{"a.b":{"c":true},"c.d":{"c":true}}`, `{"a.b":{"c":true,"e":"2026-01-01T00:00:00Z"}}`} {
		f.Add(annotation, true)
		f.Add(annotation, false)
	}
	f.Fuzz(func(t *testing.T, annotation string, isGone bool) {
		asked := map[string]state{"a.b": refused, "serving.b": serving}
		if isGone {
			asked["a.b"] = gone
		}
		freed, changed, err := free(annotation, asked)
		if err != nil || !changed {
			if freed != "" {
				t.Errorf("%q became %q without a change: %v", annotation, freed, err)
			}
			return
		}
		if again, more, err := free(freed, asked); more || err != nil {
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
			t.Errorf("notes about other names changed: %q became %q", annotation, freed)
		}
	})
}
