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

package fieldpath_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

func mustParse(t testing.TB, text string) fieldpath.Path {
	t.Helper()
	parsed, err := fieldpath.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text string
		// canonical is empty if it equals the text.
		canonical string
	}{
		"a field":                          {text: "spec"},
		"a field of a field":               {text: "spec.replicas"},
		"names with $, _ and -":            {text: "$ref._a-b.c_$"},
		"a quoted name":                    {text: "metadata.labels['app.kubernetes.io/name']"},
		"a quoted name that needs none":    {text: "metadata['labels']['app']", canonical: "metadata.labels.app"},
		"a quoted name with a bracket":     {text: "data['a]b']"},
		"a quoted name of digits":          {text: "data['0']"},
		"a quoted name with double quotes": {text: `data['"']`},
		"a quoted name of a step":          {text: "data['[*]']"},
		"a quoted name with a line break":  {text: "data['a\nb']"},
		"an item":                          {text: "spec.containers[0].image"},
		"an item with leading zeros":       {text: "a[007]", canonical: "a[7]"},
		"all items":                        {text: "spec.containers[*].image"},
		"items of items":                   {text: "a[*][0][*]"},
		"items by a field":                 {text: `spec.containers[?(@.name=="app")].image`},
		"items by a field, single quotes":  {text: `c[?(@.name=='app')]`, canonical: `c[?(@.name=="app")]`},
		"items by a value with quotes":     {text: `c[?(@.name=='a"b')]`},
		"items by a value with brackets":   {text: `c[?(@.name==")].x")].y`},
		"items by an empty value":          {text: `c[?(@.name=="")]`},
		"as long as it may be":             {text: strings.Repeat("a", 512)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.canonical == "" {
				test.canonical = test.text
			}
			if got := mustParse(t, test.text).String(); got != test.canonical {
				t.Errorf("want %s, got %s", test.canonical, got)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ text, message string }{
		"nothing":                  {"", `"" is no path: begin with the name of a field`},
		"a leading dot":            {".spec", "without a dot"},
		"a leading bracket":        {"['spec']", "begin with the name"},
		"JSONPath braces":          {"{.spec}", "begin with the name"},
		"a leading digit":          {"0a", "begin with the name"},
		"a trailing dot":           {"spec.", `after "spec" must follow .name`},
		"two dots":                 {"spec..a", `after "spec" must follow`},
		"a dot before a bracket":   {"spec.[0]", `after "spec" must follow`},
		"a name with a slash":      {"labels.a/b", `after "labels.a" must follow`},
		"double quotes":            {`labels["a"]`, `after "labels" must follow`},
		"an empty name":            {"labels['']", `after "labels" must follow`},
		"an open bracket":          {"a.b[0", `after "a.b" must follow`},
		"a negative place":         {"a[-1]", `after "a" must follow`},
		"a range":                  {"a[0:2]", `after "a" must follow`},
		"a place beyond all lists": {"a[99999999999]", "no list has an item [99999999999]"},
		"a filter without quotes":  {"a[?(@.b==1)]", `after "a" must follow`},
		"a filter by two fields":   {`a[?(@.b.c=="1")]`, `after "a" must follow`},
		"text behind":              {"a b", `after "a" must follow`},
		"a line break behind":      {"a\n", `after "a" must follow`},
		"too long":                 {strings.Repeat("a", 513), "513 characters, at most 512"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parsed, err := fieldpath.Parse(test.text)
			if err == nil {
				t.Fatalf("accepted as %s", parsed)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("want %q in: %v", test.message, err)
			}
			if !reflect.DeepEqual(parsed, fieldpath.Path{}) {
				t.Errorf("returned %s with the error", parsed)
			}
		})
	}
}

// pattern is the pattern of API servers for a v1alpha1.FieldPath, from the CRD.
func pattern(t testing.TB) *regexp.Regexp {
	t.Helper()
	definition, err := os.ReadFile("../../../apis/schemas/crds/synchub.dev_publishedresources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(definition, &crd); err != nil {
		t.Fatal(err)
	}
	ignored := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["ignoreFields"]
	if ignored.Items == nil {
		t.Fatal("there is no spec.ignoreFields")
	}
	return regexp.MustCompile(ignored.Items.Schema.Properties["path"].Pattern)
}

func TestRoot(t *testing.T) {
	for text, want := range map[string]string{"spec": "spec", "spec.a": "spec", "spec[0]": "spec", "spec['a']": "spec", "$a-b_.c": "$a-b_"} {
		if got := mustParse(t, text).Root(); got != want {
			t.Errorf("%s begins with %q, got %q", text, want, got)
		}
	}
}

func TestZeroPathMatchesNothing(t *testing.T) {
	var nowhere fieldpath.Path
	object := map[string]any{"": "a", "b": "c"}
	fail := func(any, bool) (any, error) { panic("called") }
	if nowhere.String() != "" || nowhere.Root() != "" || nowhere.Values(object) != nil || nowhere.Delete(object) || nowhere.Change(object, true, fail) != nil ||
		nowhere.IsIn(set(t, `{"f:":{}}`)) {
		t.Error("it leads somewhere")
	}
}

func FuzzParse(f *testing.F) {
	accepted := pattern(f)
	for _, text := range []string{"", "a.", "a[99999999999]", "a[99999999999]0", "ä", "a['']", "a[-1]", `a[?(@.0=="a")]`, "a", "a.b", "a['b.c'].d", "a[0][*]", `a[?(@.b=="c")]`, `a[?(@.b=='"')]`, "a['[*]']", "$-._", "a[00]", "a['\xff']"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := fieldpath.Parse(text)
		matches := accepted.MatchString(text) && utf8.RuneCountInString(text) <= 512
		// An index beyond the limit is invalid, which a pattern cannot express. Parse does not read the rest of such a path.
		beyond := err != nil && strings.Contains(err.Error(), "no list has an item")
		if !beyond && matches != (err == nil) {
			t.Errorf("API servers accept %q: %v, but %v", text, matches, err)
		}
		if err != nil {
			return
		}
		canonical := parsed.String()
		again, err := fieldpath.Parse(canonical)
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, canonical, err)
		}
		if !reflect.DeepEqual(parsed, again) || again.String() != canonical {
			t.Errorf("%q is written as %q, and read as another path", text, canonical)
		}
		if parsed.Root() == "" || !strings.HasPrefix(text, parsed.Root()) {
			t.Errorf("%q begins with %q", text, parsed.Root())
		}
	})
}

func TestOverlaps(t *testing.T) {
	for _, test := range []struct {
		one, other string
		want       bool
	}{
		{"spec", "spec", true},
		{"spec", "spec.a.b", true},
		{"spec.a", "spec.b", false},
		{"spec.a.b", "spec.b.a", false},
		{"a[*]", "a[3]", true},
		{"a[2].x", "a[3].x", false},
		{`a[?(@.n=="x")]`, `a[?(@.n=="x")].b`, true},
		{`a[?(@.n=="x")]`, `a[?(@.n=="y")]`, false},
		{`a[?(@.n=="x")]`, `a[?(@.m=="y")]`, true},
		{`a[?(@.n=="x")]`, "a[0]", true},
		{"a[*]", "a.b", false},
	} {
		one, other := mustParse(t, test.one), mustParse(t, test.other)
		if one.Overlaps(other) != test.want || other.Overlaps(one) != test.want {
			t.Errorf("%s and %s: want %v", one, other, test.want)
		}
	}
	if (fieldpath.Path{}).Overlaps(mustParse(t, "a")) {
		t.Error("a path that leads nowhere meets another")
	}
	if got := mustParse(t, "a[*]").Child("b.c").String(); got != "a[*]['b.c']" {
		t.Errorf("the child is %s", got)
	}
}

func TestParseJSONPath(t *testing.T) {
	for text, want := range map[string]string{
		"$.spec.replicas":                    "spec.replicas",
		"$.spec.containers.0.env.1.value":    "spec.containers[0].env[1].value",
		"$['spec'][\"containers\"][0].image": "spec.containers[0].image",
		"$.items.*.name":                     "items[*].name",
		"$.items[*].name":                    "items[*].name",
		"$.c[?(@.name==\"a.0\")].image":      `c[?(@.name=="a.0")].image`,
		"$.metadata.annotations[\"a.b/c\"]":  "metadata.annotations['a.b/c']",
	} {
		if got, err := fieldpath.ParseJSONPath(text); err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                              "begin with $",
		"spec":                          "begin with $",
		"$":                             "does not begin with the name of a field",
		"$.0":                           "does not begin with the name of a field",
		"$[*]":                          "does not begin with the name of a field",
		"$..image":                      `after "$" must follow`,
		"$.a[0:2]":                      `after "$.a" must follow`,
		"$.a['b','c']":                  `after "$.a" must follow`,
		"$.a.99999999999":               `after "$.a" no list has an item [99999999999]`,
		"$." + strings.Repeat("a", 511): "at most 512",
	} {
		if got, err := fieldpath.ParseJSONPath(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
}
