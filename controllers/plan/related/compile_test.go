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
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// facts are the fields of a relation that the tests compare.
type facts struct {
	original, copy       schema.GroupVersionResource
	kind, identity       string
	statusReturn, orphan bool
	down, up, naming     bool
}

func TestCompile(t *testing.T) {
	projected := schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "credentials"}
	for title, test := range map[string]struct {
		text string
		want facts
	}{
		"little":                     {"{}", facts{original: secrets, copy: secrets, statusReturn: true}},
		"from the target":            {"{origin: Target}", facts{original: secrets, copy: secrets}},
		"without status":             {"{statusReturn: false}", facts{original: secrets, copy: secrets}},
		"with status":                {"{statusReturn: true}", facts{original: secrets, copy: secrets, statusReturn: true}},
		"deleted":                    {"{deletionPolicy: Delete}", facts{original: secrets, copy: secrets, statusReturn: true}},
		"orphaned":                   {"{deletionPolicy: Orphan}", facts{original: secrets, copy: secrets, statusReturn: true, orphan: true}},
		"projected":                  {"{projection: {group: example.com, version: v2, kind: Credential, resource: credentials}}", facts{original: projected, copy: secrets, kind: "Credential", statusReturn: true}},
		"projected, from the target": {"{origin: Target, projection: {group: example.com, version: v2, kind: Credential, resource: credentials}}", facts{original: secrets, copy: projected, kind: "Credential"}},
		"projected in part":          {"{resource: {group: example.com, version: v1, resource: users}, projection: {group: ''}}", facts{original: schema.GroupVersionResource{Version: "v1", Resource: "users"}, copy: users, statusReturn: true}},
		"of another export":          {"{resource: {version: v1, resource: secrets, identityHash: abc}}", facts{original: secrets, copy: secrets, identity: "abc", statusReturn: true}},
		"mutated":                    {"{mutation: {down: [{delete: {path: spec.x}}], up: [{delete: {path: status.x}}]}}", facts{original: secrets, copy: secrets, statusReturn: true, down: true, up: true}},
		"mutated, from the target":   {"{origin: Target, mutation: {up: [{delete: {path: data.x}}]}}", facts{original: secrets, copy: secrets, up: true}},
		"named":                      {"{naming: {name: '{{ .Primary.metadata.name }}-{{ .Object.metadata.name }}'}}", facts{original: secrets, copy: secrets, statusReturn: true, naming: true}},
	} {
		t.Run(title, func(t *testing.T) {
			spec := entry(t, "{object: {template: x}}")
			decodeInto(t, test.text, &spec)
			relations, err := related.Compile([]synchubv1alpha1.RelatedResource{spec})
			if err != nil {
				t.Fatal(err)
			}
			made := relations[0]
			got := facts{
				original: made.SourceResource(), copy: made.DestinationResource(), kind: made.MailboxKind, identity: made.IdentityHash,
				statusReturn: made.StatusReturn, orphan: made.Orphan, down: made.Down != nil, up: made.Up != nil, naming: made.Naming != nil,
			}
			if got != test.want || made.Identifier != "creds" || made.Origin != spec.Origin || !made.Created.Equal(time.Time{}) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	for title, test := range map[string]struct{ text, want string }{
		"no identifier":             {"{identifier: '', object: {template: x}}", "related[1].identifier: it is required"},
		"an identifier twice":       {"{identifier: first, object: {template: x}}", `related[1].identifier: "first" is already used by related[0]`},
		"no origin":                 {"{origin: Moon, object: {template: x}}", `related[1].origin: "Moon" is neither Mailbox nor Target`},
		"down from the target":      {"{origin: Target, object: {template: x}, mutation: {down: [{delete: {path: spec.x}}]}}", "related[1].mutation.down: what comes from the target does not go down"},
		"status from the target":    {"{origin: Target, object: {template: x}, statusReturn: true}", "related[1].statusReturn: "},
		"no version":                {"{resource: {version: ''}, object: {template: x}}", "related[1].resource.version: it is required"},
		"no resource":               {"{resource: {resource: ''}, object: {template: x}}", "related[1].resource.resource: it is required"},
		"projected without kind":    {"{projection: {resource: users}, object: {template: x}}", "related[1].projection.kind: it is required when projection.resource is set"},
		"no object":                 {"{}", "related[1].object: exactly one of reference, selector, template and owner is required"},
		"two objects":               {"{object: {template: x, owner: {}}}", "related[1].object: exactly one of"},
		"no path":                   {"{object: {reference: {path: '.spec'}}}", `related[1].object.reference.path: ".spec" is no path`},
		"no pattern":                {"{object: {reference: {path: spec.x, regex: {pattern: '('}}}}", "related[1].object.reference.regex.pattern: error parsing regexp"},
		"an empty pattern":          {"{object: {reference: {path: spec.x, regex: {replacement: x}}}}", "related[1].object.reference.regex.pattern: it is required"},
		"a namespace without name":  {"{object: {reference: {path: spec.x, namespaceField: ns}}}", "related[1].object.reference.nameField: it is required when namespaceField is set"},
		"no template":               {"{object: {template: '{{ .Object }}'}}", "related[1].object.template: "},
		"all labels":                {"{object: {selector: {}}}", "related[1].object.selector: an empty selector would take everything"},
		"no label":                  {"{object: {selector: {matchLabels: {'a b': x}}}}", "related[1].object.selector.matchLabels[a b]: "},
		"no template of a label":    {"{object: {selector: {matchLabels: {a: '{{'}}}}", "related[1].object.selector.matchLabels[a]: "},
		"no operator":               {"{object: {selector: {matchExpressions: [{key: a, operator: Is}]}}}", "related[1].object.selector.matchExpressions: "},
		"no namespace":              {"{object: {template: x}, namespace: {}}", "related[1].namespace: exactly one of reference, selector and template is required"},
		"two namespaces":            {"{object: {template: x}, namespace: {template: x, reference: {path: x}}}", "related[1].namespace: exactly one of"},
		"a namespace twice":         {"{object: {reference: {path: x, nameField: n, namespaceField: ns}}, namespace: {template: x}}", "related[1].namespace: it excludes object.reference.namespaceField"},
		"no path of namespaces":     {"{object: {template: x}, namespace: {reference: {path: ''}}}", "related[1].namespace.reference.path: "},
		"all namespaces":            {"{object: {template: x}, namespace: {selector: {matchLabels: {}}}}", "related[1].namespace.selector: an empty selector would take everything"},
		"no template of namespaces": {"{object: {template: x}, namespace: {template: '{{ .Secret }}'}}", "related[1].namespace.template: "},
		"no name of copies":         {"{object: {template: x}, naming: {name: '{{ .Secret }}'}}", "related[1].naming.name: "},
		"no namespace of copies":    {"{object: {template: x}, naming: {namespace: '{{ x }}'}}", "related[1].naming.namespace: "},
		"no mutation":               {"{object: {template: x}, mutation: {down: [{delete: {path: spec.x}}, {cel: {path: spec.x, expression: '1 +'}}]}}", "related[1].mutation.down[1].cel.expression: "},
		"no mutation upwards":       {"{object: {template: x}, mutation: {up: [{}]}}", "related[1].mutation.up[0]: "},
	} {
		t.Run(title, func(t *testing.T) {
			first := entry(t, "{identifier: first, object: {template: x}}")
			relations, err := related.Compile([]synchubv1alpha1.RelatedResource{first, entry(t, test.text)})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\nrelated") {
				t.Errorf("the error is %v, want one: %s", err, test.want)
			}
			if relations != nil {
				t.Errorf("compiled is %+v all the same", relations)
			}
		})
	}
}

// The error names every mistake, with its field.
func TestAllErrorsAreReported(t *testing.T) {
	_, err := related.Compile([]synchubv1alpha1.RelatedResource{
		entry(t, "{origin: '', object: {reference: {path: ''}}, mutation: {down: [{}, {}]}}"), entry(t, "{}"),
	})
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"related[0].origin: ", "related[0].object.reference.path: ", "related[0].mutation.down[0]: ", "related[0].mutation.down[1]: ",
		"related[1].object: ", "related[1].identifier: ",
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("the errors are\n%v\nwant %q", err, want)
	}
	for index, line := range lines {
		if !strings.HasPrefix(line, want[index]) {
			t.Errorf("error %d is %s, want %s", index, line, want[index])
		}
	}
}

func TestNoRelations(t *testing.T) {
	if relations, err := related.Compile(nil); relations != nil || err != nil {
		t.Errorf("%v, %v", relations, err)
	}
}
