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

package publishedresource_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// richSpec returns a spec with one of each rule.
func richSpec() spec {
	spec := parseSpec("example.com widgets - -")
	spec.Filter = &synchubv1alpha1.Filter{CEL: "self.spec.x > 1"}
	spec.Naming = &synchubv1alpha1.Naming{Name: "a-{{ .Object.metadata.name }}"}
	spec.Mutation = &synchubv1alpha1.Mutation{
		Down: []synchubv1alpha1.MutationStep{{Delete: &synchubv1alpha1.DeleteMutation{Path: "spec.a"}}},
		Up:   []synchubv1alpha1.MutationStep{{CEL: &synchubv1alpha1.CELMutation{Path: "status.a", Expression: "value"}}},
	}
	spec.IgnoreFields = []synchubv1alpha1.IgnoredField{{Path: "spec.a"}, {Path: "spec.b", OnCreate: new(false)}}
	spec.Related = []synchubv1alpha1.RelatedResource{{
		Identifier: "secret", Origin: synchubv1alpha1.RelatedOriginTarget,
		Resource: synchubv1alpha1.RelatedResourceDescriptor{Version: "v1", Resource: "secrets"},
		Object:   synchubv1alpha1.RelatedObject{Reference: &synchubv1alpha1.RelatedReference{Path: "spec.secretName"}},
	}}
	return spec
}

func TestRules(t *testing.T) {
	spec := richSpec()
	got, err := publishedresource.NewCompiler().Compile(published("name", spec), exported(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	rules := got.Rules
	if rules.Filter == nil || rules.Naming == nil || rules.Down == nil || rules.Up == nil || len(rules.Related) != 1 {
		t.Errorf("got %+v", rules)
	}
	if len(rules.IgnoredFields) != 2 || rules.IgnoredFields[0].Path.String() != "spec.a" || !rules.IgnoredFields[0].OnCreate || rules.IgnoredFields[1].OnCreate {
		t.Errorf("got %+v", rules.IgnoredFields)
	}
	if strings.Join(rules.Versions, " ") != "v2 v1 v3alpha1" || !got.ServesVersion("v3alpha1") || got.ServesVersion("v4") {
		t.Errorf("got %v", rules.Versions)
	}
}

// The error names all invalid fields at once.
func TestErrorsNameTheirFields(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*spec)
		fields []string
	}{
		"a filter":   {func(s *spec) { s.Filter.CEL = "self.spec.x >" }, []string{"spec.filter.cel: "}},
		"a name":     {func(s *spec) { s.Naming.Name = "{{ .Nothing }}" }, []string{"spec.naming.name: "}},
		"a mutation": {func(s *spec) { s.Mutation.Down[0].Delete.Path = "metadata.name" }, []string{"spec.mutation.down[0].delete.path: "}},
		"a field":    {func(s *spec) { s.IgnoreFields[1].Path = "spec[" }, []string{"spec.ignoreFields[1].path: "}},
		"a relation": {func(s *spec) { s.Related[0].Object.Reference.Path = "spec[" }, []string{"spec.related[0].object.reference.path: "}},
		"two steps": {
			func(s *spec) {
				s.Mutation.Up = []synchubv1alpha1.MutationStep{
					{CEL: &synchubv1alpha1.CELMutation{Path: "status.a", Expression: "valu"}}, {CEL: &synchubv1alpha1.CELMutation{Path: "status[", Expression: "value"}},
				}
			},
			[]string{"spec.mutation.up[0].cel.expression: ", "spec.mutation.up[1].cel.path: "},
		},
		"one of each": {
			func(s *spec) {
				s.Filter.CEL, s.Naming.Name, s.IgnoreFields[0].Path = "(", "{{ .Nothing }}", "["
				s.Mutation.Up[0].CEL.Expression = "("
			},
			[]string{"spec.filter.cel: ", "spec.naming.name: ", "spec.mutation.up[0].cel.expression: ", "spec.ignoreFields[0].path: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := richSpec()
			api := exported(t, spec)
			test.change(&spec)
			got, err := publishedresource.NewCompiler().Compile(published("name", spec), api)
			if err == nil {
				t.Fatalf("got %+v", got)
			}
			for _, field := range test.fields {
				if strings.Count("\n"+err.Error(), "\n"+field) != 1 {
					t.Errorf("the error does not name %s: %v", field, err)
				}
			}
		})
	}
}

// Specs with the same rules compile to equal values, so that no controller restarts.
func TestEqualMeaningIsEqual(t *testing.T) {
	compiler := publishedresource.NewCompiler()
	compile := func(name string, created int64, spec spec) plan.Resource {
		t.Helper()
		object := &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(created, 0)}, Spec: spec}
		got, err := compiler.Compile(object, exported(t, spec))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := compile("a", 1, richSpec())
	if again := compile("a", 1, richSpec()); again != first {
		t.Errorf("want %+v\ngot  %+v", first, again)
	}
	if created := first.Related()[0].Created; !created.Equal(time.Unix(1, 0)) {
		t.Errorf("its relations are of %v", created)
	}
	for name, other := range map[string]plan.Resource{
		"another name": compile("b", 1, richSpec()),
		"another age":  compile("a", 2, richSpec()),
		"other rules": compile("a", 1, func() spec {
			spec := richSpec()
			spec.Mutation.Down[0].Delete.Path = "spec.b"
			return spec
		}()),
		"another policy": compile("a", 1, func() spec {
			spec := richSpec()
			spec.Replace = true
			return spec
		}()),
	} {
		if other == first {
			t.Errorf("%s makes no difference", name)
		}
	}
	before := compile("b", 1, richSpec())
	compiler.RetainOnly(func(name string) bool { return name == "b" })
	if after := compile("b", 1, richSpec()); after != before {
		t.Error("a kept program was compiled again")
	}
	before = compile("a", 1, richSpec())
	compiler.RetainOnly(func(string) bool { return false })
	if after := compile("a", 1, richSpec()); after == before {
		t.Error("a dropped program is still cached")
	}
}

// The versions that mailboxes serve are a part of the compiled rules.
func TestOtherVersions(t *testing.T) {
	compiler, spec := publishedresource.NewCompiler(), richSpec()
	api := exported(t, spec)
	before, err := compiler.Compile(published("a", spec), api)
	if err != nil || !before.ServesVersion("v1") {
		t.Fatal(before, err)
	}
	api.Versions = api.Versions[:1]
	if after, err := compiler.Compile(published("a", spec), api); err != nil || after == before || after.ServesVersion("v1") {
		t.Errorf("got %+v, %v", after, err)
	}
}
