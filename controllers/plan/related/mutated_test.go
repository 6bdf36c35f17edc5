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

package related_test

import (
	"testing"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// A mutation of the field in which a primary names related objects is an error, unless a naming template renames the copies.
func TestMutatedReference(t *testing.T) {
	const (
		byField  = "object: {reference: {path: 'spec.users[*].secret'}}"
		byObject = "object: {reference: {path: 'spec.users[*]', nameField: secret, namespaceField: namespace}}"
	)
	for name, test := range map[string]struct {
		entry, path string
		// want is empty if there is no error.
		want string
	}{
		"no mutation":                       {byField, "", ""},
		"of another field":                  {byField, "spec.size", ""},
		"of another field of the items":     {byField, "spec.users[*].name", ""},
		"of the field":                      {byField, "spec.users[*].secret", "spec.users[*].secret"},
		"of the field of one item":          {byField, "spec.users[0].secret", "spec.users[*].secret"},
		"of an item chosen by a value":      {byField, `spec.users[?(@.name=="x")].secret`, "spec.users[*].secret"},
		"of all that is above it":           {byField, "spec.users", "spec.users[*].secret"},
		"of the field, with a naming":       {byField + ", naming: {name: x}", "spec.users[*].secret", ""},
		"of the field, with a namespace":    {byField + ", naming: {namespace: x}", "spec.users[*].secret", "spec.users[*].secret"},
		"of the name":                       {byObject, "spec.users[*].secret", "spec.users[*].secret"},
		"of the namespace":                  {byObject, "spec.users[*].namespace", "spec.users[*].namespace"},
		"of the namespace, with a name":     {byObject + ", naming: {name: x}", "spec.users[*].namespace", "spec.users[*].namespace"},
		"of both, with a naming of both":    {byObject + ", naming: {name: x, namespace: y}", "spec.users", ""},
		"of something else beside the name": {byObject, "spec.users[*].size", ""},
		"found by labels":                   {"object: {selector: {matchLabels: {a: b}}}", "spec", ""},
	} {
		t.Run(name, func(t *testing.T) {
			relations, err := related.Compile([]synchubv1alpha1.RelatedResource{entry(t, "{"+test.entry+"}")})
			if err != nil {
				t.Fatal(err)
			}
			var steps []synchubv1alpha1.MutationStep
			if test.path != "" {
				steps = []synchubv1alpha1.MutationStep{{Regex: &synchubv1alpha1.RegexMutation{Path: synchubv1alpha1.MutablePath(test.path), RegexRewrite: synchubv1alpha1.RegexRewrite{Pattern: "^", Replacement: "acme-"}}}}
			}
			program, err := mutation.Compile(steps)
			if err != nil {
				t.Fatal(err)
			}
			if down, up := relations[0].MutatedReference(program, nil), relations[0].MutatedReference(nil, program); down != test.want || up != test.want {
				t.Errorf("want %q, got %q for downsync and %q for upsync", test.want, down, up)
			}
		})
	}
}
