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
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// environment is the environment of all templates in these tests.
var environment = related.Environment{Mailbox: "box", SyncTarget: "florin"}

// compile compiles an entry for secrets with the given fields.
func compile(t testing.TB, text string) *related.Relation {
	t.Helper()
	relations, err := related.Compile([]synchubv1alpha1.RelatedResource{entry(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	return relations[0]
}

func entry(t testing.TB, text string) synchubv1alpha1.RelatedResource {
	t.Helper()
	made := synchubv1alpha1.RelatedResource{
		Identifier: "creds", Origin: inMailbox,
		Resource: synchubv1alpha1.RelatedResourceDescriptor{Version: "v1", Resource: "secrets"},
	}
	decodeInto(t, text, &made)
	return made
}

// decodeInto sets the fields in the text.
func decodeInto(t testing.TB, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// newPrimary returns the primary a/app, or app if it is cluster-scoped.
func newPrimary(t testing.TB, namespace, spec string) *unstructured.Unstructured {
	t.Helper()
	primary := fixtures.Object(t, "{apiVersion: v1, kind: App, metadata: {name: app, uid: one, labels: {tier: web}}, spec: "+spec+"}")
	if namespace != "" {
		primary.SetNamespace(namespace)
	}
	return primary
}

// write formats a query, without its source namespace.
func write(query related.Query) string {
	var parts []string
	add := func(format string, value any) { parts = append(parts, fmt.Sprintf(format, value)) }
	for _, name := range query.Names {
		add("%s", name)
	}
	for _, name := range query.NamesInSelectedNamespaces {
		add("*/%s", name)
	}
	if query.Selector != nil {
		add("labels %s", query.Selector)
	}
	if query.Owner != "" {
		add("owner %s", query.Owner)
	}
	if query.ControllerOnly {
		add("%s", "controller")
	}
	if len(query.Namespaces) > 0 {
		add("in %q", query.Namespaces)
	}
	if query.NamespaceSelector != nil {
		add("in selected %q", query.NamespaceSelector.String())
	}
	return strings.Join(parts, ", ")
}

func TestResolve(t *testing.T) {
	const listed = "{object: {reference: {path: 'spec.users[*].secret'}}}"
	for title, test := range map[string]struct {
		// namespace is the primary's; "-" stands for none.
		relation, namespace, spec, want string
	}{
		"a name":                               {"{object: {reference: {path: spec.secret}}}", "a", "{secret: x}", "a/x"},
		"a name, of a primary in none":         {"{object: {reference: {path: spec.secret}}}", "-", "{secret: x}", "/x"},
		"a missing field":                      {"{object: {reference: {path: spec.secret}}}", "a", "{}", ""},
		"an empty field":                       {"{object: {reference: {path: spec.secret}}}", "a", "{secret: ''}", ""},
		"a null":                               {"{object: {reference: {path: spec.secret}}}", "a", "{secret: null}", ""},
		"no spec":                              {"{object: {reference: {path: spec.secret}}}", "a", "null", ""},
		"a list of names":                      {listed, "a", "{users: [{secret: u}, {secret: x}, {}, {secret: u}]}", "a/u, a/x"},
		"an empty list":                        {listed, "a", "{users: []}", ""},
		"an item of a list":                    {"{object: {reference: {path: 'spec.users[?(@.name==\"root\")].secret'}}}", "a", "{users: [{name: x, secret: u}, {name: root, secret: x}]}", "a/x"},
		"a part of a text":                     {"{object: {reference: {path: spec.url, regex: {pattern: '^.*/([a-z]+)$', replacement: 'x-${1}'}}}}", "a", "{url: https://example.com/abc}", "a/x-abc"},
		"every match":                          {"{object: {reference: {path: spec.url, regex: {pattern: '[/:.]+', replacement: '-'}}}}", "a", "{url: https://example.com/abc}", "a/https-example-com-abc"},
		"a text without a match":               {"{object: {reference: {path: spec.url, regex: {pattern: 'z+', replacement: '-'}}}}", "a", "{url: abc}", "a/abc"},
		"a text of which nothing is left":      {"{object: {reference: {path: spec.url, regex: {pattern: '.*'}}}}", "a", "{url: abc}", ""},
		"an empty text is not rewritten":       {"{object: {reference: {path: spec.url, regex: {pattern: '^', replacement: 'x'}}}}", "a", "{url: ''}", ""},
		"objects with a name":                  {"{object: {reference: {path: 'spec.refs[*]', nameField: name}}}", "a", "{refs: [{name: x}, {name: ''}, {}, null]}", "a/x"},
		"objects with a name and namespace":    {"{object: {reference: {path: 'spec.refs[*]', nameField: name, namespaceField: ns}}}", "a", "{refs: [{name: x, ns: c}, {name: u}, {name: z, ns: ''}, {ns: b}, {name: w, ns: null}, {name: x, ns: b}]}", "a/u, a/w, a/z, b/x, c/x"},
		"the same, of a primary in none":       {"{object: {reference: {path: 'spec.ref', nameField: name, namespaceField: ns}}}", "-", "{ref: {name: x, ns: c}}", "c/x"},
		"only the name is rewritten":           {"{object: {reference: {path: 'spec.ref', nameField: name, namespaceField: ns, regex: {pattern: x, replacement: u}}}}", "a", "{ref: {name: x, ns: x}}", "x/u"},
		"a template":                           {"{object: {template: '{{ .Primary.metadata.name }}-{{ .Mailbox }}-{{ .SyncTarget }}'}}", "a", "{}", "a/app-box-florin"},
		"a template that yields nothing":       {"{object: {template: '{{ with .Primary.spec.secret }}{{ . }}{{ end }}'}}", "a", "{secret: ''}", ""},
		"names in a namespace":                 {"{object: {reference: {path: 'spec.secrets[*]'}}, namespace: {template: '{{ .Primary.metadata.namespace }}-system'}}", "a", "{secrets: [u, x]}", "a-system/u, a-system/x"},
		"names in a namespace that is none":    {"{object: {reference: {path: 'spec.secrets[*]'}}, namespace: {template: '{{ .Primary.spec.ns }}'}}", "a", "{secrets: [u, x], ns: ''}", ""},
		"names in several namespaces":          {"{object: {reference: {path: 'spec.secrets[*]'}}, namespace: {reference: {path: 'spec.where[*]'}}}", "-", "{secrets: [u, x], where: [c, b, c]}", "b/u, b/x, c/u, c/x"},
		"no names in several namespaces":       {"{object: {reference: {path: 'spec.secrets[*]'}}, namespace: {reference: {path: 'spec.where[*]'}}}", "a", "{where: [c, b, c]}", ""},
		"a namespace that is cut out":          {"{object: {template: x}, namespace: {reference: {path: spec.where, regex: {pattern: '^ns/'}}}}", "a", "{where: ns/b}", "b/x"},
		"names in selected namespaces":         {"{object: {reference: {path: 'spec.secrets[*]'}}, namespace: {selector: {matchLabels: {team: '{{ .Primary.spec.team }}'}}}}", "a", "{secrets: [u, x], team: red}", `*/u, */x, in selected "team=red"`},
		"in namespaces of nobody":              {"{object: {template: x}, namespace: {selector: {matchLabels: {team: '{{ .Primary.spec.team }}'}}}}", "a", "{team: ''}", ""},
		"labels":                               {"{object: {selector: {matchLabels: {app: '{{ .Primary.metadata.name }}', b: c}, matchExpressions: [{key: d, operator: In, values: [e, f]}, {key: g, operator: DoesNotExist}]}}}", "a", "{}", `labels app=app,b=c,d in (e,f),!g, in ["a"]`},
		"labels, of a primary in none":         {"{object: {selector: {matchLabels: {b: c}}}}", "-", "{}", `labels b=c, in [""]`},
		"labels that are empty":                {"{object: {selector: {matchLabels: {app: '{{ .Primary.spec.app }}', b: c}}}}", "a", "{app: ''}", ""},
		"labels of which one is empty":         {"{object: {selector: {matchLabels: {app: '', b: c}}}}", "a", "{}", ""},
		"labels in several namespaces":         {"{object: {selector: {matchLabels: {b: c}}}, namespace: {reference: {path: 'spec.where[*]'}}}", "a", "{where: [c, b]}", `labels b=c, in ["b" "c"]`},
		"labels in selected namespaces":        {"{object: {selector: {matchLabels: {b: c}}}, namespace: {selector: {matchExpressions: [{key: d, operator: Exists}]}}}", "a", "{}", `labels b=c, in selected "d"`},
		"labels in no namespace":               {"{object: {selector: {matchLabels: {b: c}}}, namespace: {reference: {path: 'spec.where[*]'}}}", "a", "{}", ""},
		"an owner":                             {"{object: {owner: {}}}", "a", "{}", `owner one, in ["a"]`},
		"a controller":                         {"{object: {owner: {controllerOnly: true}}}", "a", "{}", `owner one, controller, in ["a"]`},
		"an owner in no namespace":             {"{object: {owner: {}}}", "-", "{}", `owner one, in selected ""`},
		"an owner in a namespace":              {"{object: {owner: {}}, namespace: {template: 'b'}}", "-", "{}", `owner one, in ["b"]`},
		"an owner, from the target":            {"{origin: Target, object: {owner: {}}}", "a", "{}", `owner one, in ["a"]`},
		"white space around a name is trimmed": {"{object: {template: '{{ .Primary.spec.secret }}'}}", "a", "{secret: ' x '}", "a/x"},
		"a path where other types are":         {"{object: {reference: {path: spec.a.b.c}}}", "a", "{a: text}", ""},
		"a name that the API server lets be":   {"{object: {reference: {path: spec.secret}}}", "a", "{secret: 'system:x'}", "a/system:x"},
		"a label in the name":                  {"{object: {template: '{{ .Primary.metadata.labels.tier }}'}}", "a", "{}", "a/web"},
		"a hash in the name":                   {"{object: {template: 'x-{{ sha3short .Primary.metadata.name 8 }}'}}", "a", "{}", "a/x-" + "5f5a17c0"},
		"the primary's own namespace, spelled": {"{object: {template: x}, namespace: {template: '{{ .Primary.metadata.namespace }}'}}", "a", "{}", "a/x"},
	} {
		t.Run(title, func(t *testing.T) {
			namespace := strings.TrimPrefix(test.namespace, "-")
			primary := newPrimary(t, namespace, test.spec)
			before := primary.DeepCopy()
			relation := compile(t, test.relation)
			query, err := relation.Resolve(primary, environment)
			if err != nil {
				t.Fatal(err)
			}
			if got := write(query); got != test.want {
				t.Errorf("it wants %s\n want %s", got, test.want)
			}
			if test.want != "" && query.SourceNamespace != namespace || query.IsEmpty() != (test.want == "") {
				t.Errorf("home is %q, empty: %v", query.SourceNamespace, query.IsEmpty())
			}
			if query.IsEmpty() && !reflect.DeepEqual(query, related.Query{}) {
				t.Errorf("nothing is %+v", query)
			}
			if again, _ := relation.Resolve(primary, environment); !again.Equal(query) {
				t.Errorf("%+v, and then %+v", query, again)
			}
			if !reflect.DeepEqual(primary, before) {
				t.Errorf("the primary is now %v", primary)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	for title, test := range map[string]struct{ relation, spec, want string }{
		"a number":                     {"{object: {reference: {path: spec.secret}}}", "{secret: 7}", "object.reference.path: spec.secret: it must lead to text, and leads to a number"},
		"a list":                       {"{object: {reference: {path: spec.secret}}}", "{secret: [x]}", "object.reference.path: spec.secret: it must lead to text, and leads to a list"},
		"an object":                    {"{object: {reference: {path: spec.secret}}}", "{secret: {name: x}}", "it must lead to text, and leads to a map"},
		"true":                         {"{object: {reference: {path: spec.secret}}}", "{secret: true}", "it must lead to text, and leads to a boolean"},
		"one of many":                  {"{object: {reference: {path: 'spec.secrets[*]'}}}", "{secrets: [x, 7]}", "object.reference.path: spec.secrets[*]: it must lead to text"},
		"text for an object":           {"{object: {reference: {path: spec.secret, nameField: name}}}", "{secret: x}", "spec.secret: it must lead to objects with the field name, and leads to text"},
		"a name that is a number":      {"{object: {reference: {path: spec.secret, nameField: name}}}", "{secret: {name: 7}}", "spec.secret: the field name must be text, and is a number"},
		"a namespace that is a number": {"{object: {reference: {path: spec.secret, nameField: name, namespaceField: ns}}}", "{secret: {name: x, ns: 7}}", "spec.secret: the field ns must be text, and is a number"},
		"a name with a slash":          {"{object: {reference: {path: spec.secret}}}", "{secret: a/b}", "spec.secret: the text cannot be the name of an object: may not contain '/'"},
		"two dots":                     {"{object: {reference: {path: spec.secret}}}", "{secret: '..'}", "the text cannot be the name of an object: may not be '..'"},
		"a long name":                  {"{object: {reference: {path: spec.secret}}}", "{secret: " + strings.Repeat("x", 254) + "}", "a name of 254 characters is too long"},
		"a very long name":             {"{object: {reference: {path: spec.secret}}}", "{secret: " + strings.Repeat("x", 4097) + "}", "it leads to a text of 4097 bytes, and at most 4096 are read"},
		"no namespace":                 {"{object: {template: x}, namespace: {reference: {path: spec.where}}}", "{where: A}", "namespace.reference.path: spec.where: the text cannot be the name of a namespace: "},
		"no namespace in an object":    {"{object: {reference: {path: spec.ref, nameField: name, namespaceField: ns}}}", "{ref: {name: x, ns: ../x}}", "object.reference.path: spec.ref: ns: the text cannot be the name of a namespace: "},
		"no namespace by a template":   {"{object: {template: x}, namespace: {template: '{{ .Primary.spec.where }}'}}", "{where: a.b}", "namespace.template: the text cannot be the name of a namespace: "},
		"no name by a template":        {"{object: {template: '{{ .Primary.spec.secret }}'}}", "{secret: a%b}", "object.template: the text cannot be the name of an object: "},
		"a missing field in templates": {"{object: {template: '{{ .Primary.spec.secret }}'}}", "{}", "object.template: cannot render the template"},
		"no label":                     {"{object: {selector: {matchLabels: {app: '{{ .Primary.spec.app }}'}}}}", "{app: a b}", "object.selector.matchLabels[app]: the text cannot be the value of a label: "},
		"no label of namespaces":       {"{object: {template: x}, namespace: {selector: {matchLabels: {app: '{{ .Primary.spec.app }}'}}}}", "{}", "namespace.selector.matchLabels[app]: cannot render the template"},
		"more names than can be":       {"{object: {reference: {path: 'spec.secrets[*]'}}}", "{secrets: [" + numbered(1001) + "]}", "the primary names 1001 objects, and may name 1000"},
		"more refs than can be":        {"{object: {reference: {path: 'spec.secrets[*]', nameField: n, namespaceField: ns}}}", "{secrets: [{n: " + strings.ReplaceAll(numbered(1001), ", ", "}, {n: ") + "}]}", "the primary names 1001 objects, and may name 1000"},
		"more places than can be":      {"{object: {reference: {path: 'spec.secrets[*]'}}, namespace: {reference: {path: 'spec.secrets[*]'}}}", "{secrets: [" + numbered(32) + "]}", "the primary names 1024 objects, and may name 1000"},
		"more namespaces than can be":  {"{object: {owner: {}}, namespace: {reference: {path: 'spec.secrets[*]'}}}", "{secrets: [" + numbered(1001) + "]}", "the primary names 1001 namespaces, and may name 1000"},
	} {
		t.Run(title, func(t *testing.T) {
			query, err := compile(t, test.relation).Resolve(newPrimary(t, "a", test.spec), environment)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), `related object "creds": `) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
			if !reflect.DeepEqual(query, related.Query{}) {
				t.Errorf("it wants %+v all the same", query)
			}
		})
	}
}

// numbered lists this many names.
func numbered(count int) string {
	var names []string
	for index := range count {
		names = append(names, fmt.Sprintf("x%d", index))
	}
	return strings.Join(names, ", ")
}

func TestNeedsNamespace(t *testing.T) {
	for text, want := range map[string]bool{
		"{object: {reference: {path: spec.x}}}":                                          true,
		"{object: {reference: {path: spec.x, nameField: name}}}":                         true,
		"{object: {reference: {path: spec.x, nameField: name, namespaceField: ns}}}":     false,
		"{object: {template: x}}":                                                        true,
		"{object: {selector: {matchLabels: {a: b}}}}":                                    true,
		"{object: {owner: {}}}":                                                          false,
		"{object: {template: x}, namespace: {template: x}}":                              false,
		"{object: {selector: {matchLabels: {a: b}}}, namespace: {reference: {path: x}}}": false,
	} {
		if got := compile(t, text).LacksNamespace(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestRelationInputs(t *testing.T) {
	for text, want := range map[string][2]bool{
		"{object: {template: x}}": {false, false},
		"{object: {template: x}, naming: {name: '{{ .Primary.metadata.name }}'}}":                       {true, false},
		"{object: {template: x}, naming: {name: '{{ .Object.metadata.name }}'}}":                        {false, false},
		"{object: {template: x}, namespace: {selector: {matchLabels: {a: b}}}}":                         {false, true},
		"{object: {template: x}, namespace: {template: x}, naming: {namespace: '{{ .Primary.kind }}'}}": {true, false},
		"{object: {selector: {matchLabels: {a: b}}}}":                                                   {false, false},
	} {
		related := compile(t, text)
		if got := [2]bool{related.NamingUsesPrimary(), related.SelectsNamespaces()}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
