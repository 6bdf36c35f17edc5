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
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// relations has one relation of each kind, for the fuzz test.
var relations = []string{
	"{object: {reference: {path: spec.secret}}}",
	"{object: {reference: {path: 'spec.users[*].secret', regex: {pattern: '[^a-z]+', replacement: '${0}-'}}}}",
	"{object: {reference: {path: 'metadata[\\'labels\\']', nameField: tier, namespaceField: uid}}}",
	"{object: {template: '{{ .Primary.spec.a | toString | trunc 300 }}{{ range .Primary.spec }}{{ . }}{{ end }}'}}",
	"{object: {selector: {matchLabels: {app: '{{ .Primary.spec.app }}', b: '{{ len .Primary.spec }}'}}}, namespace: {selector: {matchLabels: {team: '{{ .Primary.spec.team.name }}'}}}}",
	"{object: {owner: {}}, namespace: {reference: {path: 'spec.where[*]'}}}",
	"{object: {reference: {path: 'spec[*]'}}, namespace: {template: '{{ index .Primary.spec 0 }}'}}",
}

// FuzzResolve tries primaries that no API server would admit.
func FuzzResolve(f *testing.F) {
	var compiled []*related.Relation
	for _, text := range relations {
		text = strings.ReplaceAll(text, `\'`, `''`)
		compiled = append(compiled, compile(f, text))
	}
	for _, text := range []string{
		"null", "{}", "{spec: null}", "{spec: []}", "{spec: [a, b, {}]}", "{metadata: []}", "{metadata: {namespace: 7, uid: {}}}",
		"{metadata: {namespace: a, uid: one, labels: {tier: x, uid: c}}, spec: {secret: x, a: b, app: c, team: {name: red}, users: [{secret: x}, {secret: A/b}, 7], where: [a, b]}}",
		"{spec: {users: [[{}]], where: {a: b}, secret: 1.5, app: '', team: ''}}", "{spec: text}", "{spec: 7}", "{spec: {a: {b: {c: d}}}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		primary := &unstructured.Unstructured{}
		if yaml.Unmarshal(text, &primary.Object) != nil {
			t.Skip()
		}
		before := primary.DeepCopy()
		for _, related := range compiled {
			query, err := related.Resolve(primary, environment)
			if err != nil && !query.IsEmpty() {
				t.Errorf("it wants %+v, and fails with %v", query, err)
			}
			again, errAgain := related.Resolve(primary, environment)
			if !query.Equal(again) || (err == nil) != (errAgain == nil) {
				t.Errorf("it wants %+v, %v, and then %+v, %v", query, err, again, errAgain)
			}
			checkNames(t, query)
		}
		if !reflect.DeepEqual(primary, before) {
			t.Errorf("the primary was changed: %v, before %v", primary, before)
		}
	})
}

// checkNames checks that every name in a query is valid.
func checkNames(t *testing.T, query related.Query) {
	sorted := slices.IsSortedFunc(query.Names, func(a, b types.NamespacedName) int {
		return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name)
	})
	if !sorted || !slices.IsSorted(query.NamesInSelectedNamespaces) || !slices.IsSorted(query.Namespaces) {
		t.Errorf("%+v is not sorted", query)
	}
	if len(slices.Compact(slices.Clone(query.Names))) != len(query.Names) || len(query.Names) > 1000 {
		t.Errorf("%v has names twice, or too many", query.Names)
	}
	for _, name := range query.Names {
		if name.Name == "" || name.Name == ".." || strings.ContainsAny(name.Name, "/%") || strings.ContainsAny(name.Namespace, "/%.") && name.Namespace != query.SourceNamespace {
			t.Errorf("%q is wanted", name)
		}
	}
}
