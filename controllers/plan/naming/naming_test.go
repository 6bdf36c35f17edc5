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

package naming_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
)

var (
	unchanged  = types.NamespacedName{Namespace: "a", Name: "x"}
	configMap  = schema.GroupKind{Kind: "ConfigMap"}
	service    = schema.GroupKind{Kind: "Service"}
	namespace  = schema.GroupKind{Kind: "Namespace"}
	role       = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	deployment = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	custom     = schema.GroupKind{Group: "example.com", Kind: "Service"}
)

// variablesOf returns the variables of templates for an object of the given name.
func variablesOf(name string) map[string]any {
	return map[string]any{
		"Object":  map[string]any{"metadata": map[string]any{"name": name, "namespace": "a"}},
		"Mailbox": "box", "SyncTarget": "florin",
	}
}

func TestName(t *testing.T) {
	const copied = "{{ .Object.metadata.name }}"
	long := strings.Repeat("x", 300)
	for title, test := range map[string]struct {
		spec *synchubv1alpha1.Naming
		// name is the object's name.
		name          string
		clusterScoped bool
		kind          schema.GroupKind
		want          string
	}{
		"no naming":                           {nil, "x", false, configMap, "a/x"},
		"no naming of what is in none":        {nil, "x", true, namespace, "/x"},
		"a name":                              {&synchubv1alpha1.Naming{Name: "{{ .Mailbox }}-" + copied}, "y", false, configMap, "a/box-y"},
		"a namespace":                         {&synchubv1alpha1.Naming{Namespace: "{{ .SyncTarget }}-{{ .Object.metadata.namespace }}"}, "y", false, configMap, "florin-a/x"},
		"both":                                {&synchubv1alpha1.Naming{Name: "y", Namespace: "b"}, "y", false, configMap, "b/y"},
		"a namespace for what is in none":     {&synchubv1alpha1.Naming{Name: "y", Namespace: "{{ .Object.metadata.missing }}"}, "y", true, role, "/y"},
		"253 characters":                      {&synchubv1alpha1.Naming{Name: copied}, long[:253], false, configMap, "a/" + long[:253]},
		"254 characters":                      {&synchubv1alpha1.Naming{Name: copied}, long[:254], false, configMap, "a/" + long[:232] + "-af97a1a6ca66df0bc0d0"},
		"63 characters of a service":          {&synchubv1alpha1.Naming{Name: copied}, long[:63], false, service, "a/" + long[:63]},
		"64 characters of a service":          {&synchubv1alpha1.Naming{Name: copied}, long[:64], false, service, "a/" + long[:42] + "-7ce100971f64e7001e8f"},
		"64 characters of a namespace":        {&synchubv1alpha1.Naming{Name: copied}, long[:64], true, namespace, "/" + long[:42] + "-7ce100971f64e7001e8f"},
		"64 characters for a namespace":       {&synchubv1alpha1.Naming{Namespace: copied}, long[:64], false, configMap, long[:42] + "-7ce100971f64e7001e8f/x"},
		"64 characters of somebody's service": {&synchubv1alpha1.Naming{Name: copied}, long[:64], false, custom, "a/" + long[:64]},
		"a cut before a dot":                  {&synchubv1alpha1.Naming{Name: copied}, long[:230] + ".-" + long, false, configMap, "a/" + long[:230] + "-"},
		"a colon in a role":                   {&synchubv1alpha1.Naming{Name: copied}, "system:x", true, role, "/system:x"},
		"a cut in a character":                {&synchubv1alpha1.Naming{Name: copied}, long[:231] + "ä" + long, true, role, "/" + long[:231] + "-"},
		"white space around it":               {&synchubv1alpha1.Naming{Name: " {{ .Mailbox }} "}, "x", false, configMap, "a/box"},
		"a hash":                              {&synchubv1alpha1.Naming{Name: "{{ sha3short .Object.metadata.name }}"}, "app", false, configMap, "a/5f5a17c01335469806cb"},
	} {
		t.Run(title, func(t *testing.T) {
			namer, err := naming.Compile(test.spec)
			if err != nil {
				t.Fatal(err)
			}
			got, err := namer.Name(variablesOf(test.name), unchanged, !test.clusterScoped, test.kind)
			if err != nil {
				t.Fatal(err)
			}
			written := got.Namespace + "/" + got.Name
			if strings.HasSuffix(test.want, "-") {
				// This case does not compare the hash.
				written = written[:len(written)-20]
			}
			if written != test.want {
				t.Errorf("it is called %s, want %s", written, test.want)
			}
		})
	}
}

func TestInvalidNames(t *testing.T) {
	for title, test := range map[string]struct {
		spec  synchubv1alpha1.Naming
		name  string
		kind  schema.GroupKind
		field string
		// value and message are parts of the error.
		value, message string
	}{
		"empty":                           {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"}, "", configMap, "spec.naming.name", "", "a name cannot be empty"},
		"an empty namespace":              {synchubv1alpha1.Naming{Namespace: "{{ .Object.metadata.name }}"}, "", configMap, "spec.naming.namespace", "", "a name cannot be empty"},
		"upper case":                      {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"}, "Abc", configMap, "spec.naming.name", "Abc", "RFC 1123 subdomain"},
		"a colon":                         {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"}, "a:b", deployment, "spec.naming.name", "a:b", "RFC 1123 subdomain"},
		"a dot in a service":              {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"}, "a.b", service, "spec.naming.name", "a.b", "must not contain dots"},
		"a dot in a namespace":            {synchubv1alpha1.Naming{Namespace: "{{ .Object.metadata.name }}"}, "a.b", role, "spec.naming.namespace", "a.b", "must not contain dots"},
		"a slash":                         {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"}, "a/b", role, "spec.naming.name", "a/b", "may not contain '/'"},
		"a slash in somebody's kind":      {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"}, "a/b", custom, "spec.naming.name", "a/b", "may not contain '/'"},
		"two dots":                        {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"}, "..", role, "spec.naming.name", "..", "may not be '..'"},
		"nothing but hyphens, and many":   {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"}, strings.Repeat("-", 300), configMap, "spec.naming.name", "-", "RFC 1123 subdomain"},
		"half a character":                {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name | trunc 1 }}"}, "ä", role, "spec.naming.name", "", "a name must be valid UTF-8"},
		"half a character, and much else": {synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name | trunc 301 }}"}, strings.Repeat("x", 300) + "ä", role, "spec.naming.name", "", "a name must be valid UTF-8"},
	} {
		t.Run(title, func(t *testing.T) {
			namer, err := naming.Compile(&test.spec)
			if err != nil {
				t.Fatal(err)
			}
			got, err := namer.Name(variablesOf(test.name), unchanged, true, test.kind)
			illegal, ok := errors.AsType[*naming.InvalidNameError](err)
			if !ok || got != (types.NamespacedName{}) {
				t.Fatalf("it is called %s, %v", got, err)
			}
			if illegal.Field != test.field || !strings.HasPrefix(illegal.Value, test.value) || len(illegal.Value) > 253 || !strings.Contains(illegal.Message, test.message) {
				t.Errorf("the error is %#v", illegal)
			}
			if want := fmt.Sprintf("%s yields %q: %s", illegal.Field, illegal.Value, illegal.Message); err.Error() != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
		})
	}
}

// The error of a template that cannot be rendered contains its field.
func TestRenderErrors(t *testing.T) {
	for field, spec := range map[string]synchubv1alpha1.Naming{
		"spec.naming.name: ":      {Name: "{{ .Object.spec.name }}"},
		"spec.naming.namespace: ": {Namespace: "{{ .Object.spec.name }}"},
	} {
		namer, err := naming.Compile(&spec)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := namer.Name(variablesOf("x"), unchanged, true, configMap); err == nil || !strings.HasPrefix(err.Error(), field) || got != (types.NamespacedName{}) {
			t.Errorf("%s: it is called %s, %v", field, got, err)
		}
	}
}

func TestCompile(t *testing.T) {
	for title, test := range map[string]struct {
		spec      synchubv1alpha1.Naming
		variables []string
		want      string
	}{
		"the usual variables":    {synchubv1alpha1.Naming{Name: "{{ .Object }}{{ .Mailbox }}{{ .SyncTarget }}"}, nil, ""},
		"another variable":       {synchubv1alpha1.Naming{Name: "{{ .Primary }}"}, nil, "name: "},
		"another, that is given": {synchubv1alpha1.Naming{Name: "{{ .Primary }}"}, []string{"Primary"}, ""},
		"no template":            {synchubv1alpha1.Naming{Name: "{{"}, nil, "name: "},
		"no namespace template":  {synchubv1alpha1.Naming{Name: "x", Namespace: "{{ nothing }}"}, nil, "namespace: "},
	} {
		namer, err := naming.Compile(&test.spec, test.variables...)
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) || (namer == nil) != (err != nil) {
			t.Errorf("%s: %v, want %s", title, err, test.want)
		}
	}
	if namer, err := naming.Compile(nil); namer != nil || err != nil {
		t.Errorf("nil: %v, %v", namer, err)
	}
}

func TestUses(t *testing.T) {
	for title, test := range map[string]struct {
		spec *synchubv1alpha1.Naming
		want bool
	}{
		"no naming":    {nil, false},
		"no variable":  {&synchubv1alpha1.Naming{Name: "x"}, false},
		"in the name":  {&synchubv1alpha1.Naming{Name: "{{ .Object.metadata.uid }}", Namespace: "x"}, true},
		"in namespace": {&synchubv1alpha1.Naming{Namespace: "{{ .Object.metadata.uid }}"}, true},
		"another":      {&synchubv1alpha1.Naming{Name: "{{ .Mailbox }}"}, false},
	} {
		namer, err := naming.Compile(test.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := namer.Uses("Object"); got != test.want {
			t.Errorf("%s: %v", title, got)
		}
	}
}

var kinds = []schema.GroupKind{configMap, service, namespace, role, deployment, custom}

// FuzzName checks that the API server would accept each name, and that different texts get different names.
func FuzzName(f *testing.F) {
	namer, err := naming.Compile(&synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}", Namespace: "{{ .Object.metadata.namespace }}"})
	if err != nil {
		f.Fatal(err)
	}
	long := strings.Repeat("x", 260)
	for _, pair := range [][2]string{
		{"", "x"}, {"a.b", "a-b"}, {"A", "a/b"}, {long, long + "y"}, {long + ".a", long + ".b"}, {"..", "."}, {"ä", "\xc3"},
		{long[:252] + "ä", long[:252] + "ö"}, {strings.Repeat("\x80", 300), strings.Repeat("-", 300)}, {strings.Repeat("a.", 200), strings.Repeat("a.", 201)},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		for _, kind := range kinds {
			first, ok := nameOf(t, namer, one, kind)
			second, okToo := nameOf(t, namer, other, kind)
			if !ok || !okToo || strings.TrimSpace(one) == strings.TrimSpace(other) || !tooLong(one, kind) || !tooLong(other, kind) {
				continue
			}
			if first == second {
				t.Errorf("%q and %q are both called %q", one, other, first)
			}
		}
	})
}

func tooLong(text string, kind schema.GroupKind) bool {
	return len(strings.TrimSpace(text)) > limit(kind)
}

func limit(kind schema.GroupKind) int {
	if kind == service || kind == namespace {
		return 63
	}
	return 253
}

// nameOf checks the name for a text; ok is false if there is none.
func nameOf(t *testing.T, namer *naming.Namer, text string, kind schema.GroupKind) (string, bool) {
	variables := variablesOf(text)
	variables["Object"].(map[string]any)["metadata"].(map[string]any)["namespace"] = "a"
	got, err := namer.Name(variables, unchanged, kind != namespace, kind)
	if err != nil {
		if _, ok := errors.AsType[*naming.InvalidNameError](err); !ok {
			t.Errorf("%q: %v", text, err)
		}
		if trimmed := strings.TrimSpace(text); isValid(trimmed, kind) {
			t.Errorf("%q is a name of a %s, but: %v", text, kind, err)
		}
		return "", false
	}
	if !isValid(got.Name, kind) {
		t.Errorf("%q is called %q, which no %s can be", text, got.Name, kind)
	}
	if trimmed := strings.TrimSpace(text); len(trimmed) <= limit(kind) && got.Name != trimmed {
		t.Errorf("%q is called %q", text, got.Name)
	}
	return got.Name, true
}

// isValid is an independent implementation of the rules for names.
func isValid(name string, kind schema.GroupKind) bool {
	if name == "" || len(name) > limit(kind) || !utf8.ValidString(name) || len(content.IsPathSegmentName(name)) > 0 {
		return false
	}
	switch kind {
	case service, namespace:
		return len(content.IsDNS1123Label(name)) == 0
	case configMap, deployment:
		return len(content.IsDNS1123Subdomain(name)) == 0
	default:
		return true
	}
}

// Ten thousand long names that differ at one position get different names.
func TestShortenedNamesDiffer(t *testing.T) {
	namer, err := naming.Compile(&synchubv1alpha1.Naming{Name: "{{ .Object.metadata.name }}"})
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]string{}
	for number := range 10000 {
		text := fmt.Sprintf("%s%05d%s", strings.Repeat("x", number%270), number, strings.Repeat("x", 280))
		name, ok := nameOf(t, namer, text, configMap)
		if other, taken := called[name]; taken || !ok {
			t.Fatalf("%q and %q are both called %q", text, other, name)
		}
		called[name] = text
	}
}

// An unchanged name is not validated: the target decides.
func TestUnchangedIsNotChecked(t *testing.T) {
	namer, err := naming.Compile(&synchubv1alpha1.Naming{Namespace: "b"})
	if err != nil {
		t.Fatal(err)
	}
	odd := types.NamespacedName{Namespace: "a", Name: "Odd Name"}
	got, err := namer.Name(variablesOf("x"), odd, true, configMap)
	if want := (types.NamespacedName{Namespace: "b", Name: "Odd Name"}); err != nil || got != want {
		written, _ := json.Marshal(got)
		t.Errorf("it is called %s, %v", written, err)
	}
}
