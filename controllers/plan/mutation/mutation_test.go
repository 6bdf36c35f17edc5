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

package mutation_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// steps decodes steps in YAML, as users write them.
func steps(t testing.TB, text string) []synchubv1alpha1.MutationStep {
	t.Helper()
	return fixtures.Decode[[]synchubv1alpha1.MutationStep](t, text)
}

func compile(t testing.TB, text string) *mutation.Program {
	t.Helper()
	program, err := mutation.Compile(steps(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, tier: front}, annotations: {note: hello}}
spec:
  replicas: 3
  nothing: null
  template:
    spec:
      containers:
      - {name: app, image: "docker.io/shop/web:1", args: [a, b]}
      - {name: side, image: "docker.io/shop/side:2"}
`

const other = `
metadata: {name: web, resourceVersion: "7"}
spec: {clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30080}]}
`

func TestRun(t *testing.T) {
	tests := map[string]struct {
		steps string
		// want is the object's value at the path in what; null if the value was removed.
		what string
		want any
		// noOther omits the object on the other side.
		noOther bool
	}{
		"delete a field":                      {steps: `[{delete: {path: spec.replicas}}]`, what: "spec.replicas"},
		"delete nothing":                      {steps: `[{delete: {path: spec.other.thing}}]`, what: "spec.replicas", want: int64(3)},
		"delete a label":                      {steps: `[{delete: {path: metadata.labels.tier}}]`, what: "metadata.labels", want: map[string]any{"app": "web"}},
		"delete all labels":                   {steps: `[{delete: {path: metadata.labels}}]`, what: "metadata.labels"},
		"delete an item":                      {steps: `[{delete: {path: "spec.template.spec.containers[?(@.name==\"side\")]"}}, {delete: {path: "spec.template.spec.containers[0].args"}}]`, what: "spec.template.spec.containers", want: []any{map[string]any{"name": "app", "image": "docker.io/shop/web:1"}}},
		"set a field":                         {steps: `[{set: {path: spec.replicas, value: 5}}]`, what: "spec.replicas", want: int64(5)},
		"set a large number":                  {steps: `[{set: {path: spec.replicas, value: 9007199254740993}}]`, what: "spec.replicas", want: int64(9007199254740993)},
		"set a fraction":                      {steps: `[{set: {path: spec.ratio, value: 1.5}}]`, what: "spec.ratio", want: 1.5},
		"set a boolean":                       {steps: `[{set: {path: spec.paused, value: true}}]`, what: "spec.paused", want: true},
		"set with parents":                    {steps: `[{set: {path: "spec.a.b['c.d/e']", value: {x: [1]}}}]`, what: "spec.a", want: map[string]any{"b": map[string]any{"c.d/e": map[string]any{"x": []any{int64(1)}}}}},
		"set all items":                       {steps: `[{set: {path: "spec.template.spec.containers[*].pull", value: Always}}, {cel: {path: spec.pulls, expression: "self.spec.template.spec.containers.map(c, c.pull)"}}]`, what: "spec.pulls", want: []any{"Always", "Always"}},
		"set a missing item":                  {steps: `[{set: {path: "spec.template.spec.containers[2].image", value: x}}]`, what: "spec.template.spec.volumes"},
		"regex":                               {steps: `[{regex: {path: "spec.template.spec.containers[*].image", pattern: "^docker\\.io/([a-z]+)/", replacement: "mirror.local/${1}-x/"}}, {cel: {path: spec.images, expression: "self.spec.template.spec.containers.map(c, c.image)"}}]`, what: "spec.images", want: []any{"mirror.local/shop-x/web:1", "mirror.local/shop-x/side:2"}},
		"regex without a match":               {steps: `[{regex: {path: metadata.labels.app, pattern: "x+"}}]`, what: "metadata.labels.app", want: "web"},
		"regex that removes":                  {steps: `[{regex: {path: metadata.labels.app, pattern: "w"}}]`, what: "metadata.labels.app", want: "eb"},
		"regex without a field":               {steps: `[{regex: {path: metadata.labels.none, pattern: "w"}}]`, what: "metadata.labels.none"},
		"template":                            {steps: `[{template: {path: metadata.labels.app, template: "{{ .Value }}-{{ .Object.metadata.namespace }}"}}]`, what: "metadata.labels.app", want: "web-shop"},
		"template, created":                   {steps: `[{template: {path: metadata.annotations.made, template: "{{ .Value | default \"new\" }}"}}]`, what: "metadata.annotations.made", want: "new"},
		"template, the other":                 {steps: `[{template: {path: spec.ip, template: "{{ .Other.spec.clusterIP }}"}}]`, what: "spec.ip", want: "10.0.0.1"},
		"template, no other":                  {steps: `[{template: {path: spec.ip, template: "{{ if .Other }}{{ .Other.spec.clusterIP }}{{ else }}none{{ end }}"}}]`, what: "spec.ip", want: "none", noOther: true},
		"template, no escaping":               {steps: `[{template: {path: spec.text, template: "{{ \"<&'>\" }}"}}]`, what: "spec.text", want: "<&'>"},
		"template, a number":                  {steps: `[{template: {path: spec.text, template: "{{ .Object.spec.replicas }}"}}]`, what: "spec.text", want: "3"},
		"cel":                                 {steps: `[{cel: {path: spec.replicas, expression: "value * 2"}}]`, what: "spec.replicas", want: int64(6)},
		"cel, created":                        {steps: `[{cel: {path: spec.a.b, expression: "value == null ? self.spec.replicas : 0"}}]`, what: "spec.a.b", want: int64(3)},
		"cel, a null":                         {steps: `[{cel: {path: spec.replicas, expression: "null"}}]`, what: "spec.replicas"},
		"cel, nothing there":                  {steps: `[{cel: {path: status.a, expression: "self.?status.b"}}]`, what: "status"},
		"cel, the other":                      {steps: `[{cel: {path: spec.ports, expression: "other.spec.ports"}}]`, what: "spec.ports", want: []any{map[string]any{"port": int64(80), "nodePort": int64(30080)}}},
		"cel, no other":                       {steps: `[{cel: {path: spec.has, expression: "other != null"}}]`, what: "spec.has", want: false, noOther: true},
		"cel, the items left":                 {steps: `[{cel: {path: "spec.template.spec.containers[*]", expression: "value.name == 'app' ? null : value"}}, {cel: {path: spec.count, expression: "self.spec.template.spec.containers.size()"}}]`, what: "spec.count", want: int64(1)},
		"cel, all see the same":               {steps: `[{cel: {path: "spec.template.spec.containers[*].image", expression: "self.spec.template.spec.containers.map(c, c.image).join(' ')"}}, {cel: {path: spec.same, expression: "self.spec.template.spec.containers[0].image == self.spec.template.spec.containers[1].image"}}]`, what: "spec.same", want: true},
		"cel, a whole label":                  {steps: `[{cel: {path: metadata.labels.replicas, expression: "string(self.spec.replicas)"}}]`, what: "metadata.labels.replicas", want: "3"},
		"template, a label of the cluster":    {steps: `[{template: {path: spec.image, template: "{{ .SyncTarget.metadata.labels.region }}.example/{{ .SyncTarget.metadata.name }}"}}]`, what: "spec.image", want: "eu.example/florin"},
		"cel, an annotation of the cluster":   {steps: `[{cel: {path: spec.size, expression: "int(syncTarget.metadata.annotations['shop.example/size'])"}}]`, what: "spec.size", want: int64(3)},
		"cel, what the cluster may lack":      {steps: `[{cel: {path: spec.zone, expression: "syncTarget.metadata.labels[?'zone'].orValue('none')"}}]`, what: "spec.zone", want: "none"},
		"cel, all annotations of the cluster": {steps: `[{cel: {path: metadata.annotations, expression: "syncTarget.metadata.annotations"}}]`, what: "metadata.annotations", want: map[string]any{"shop.example/size": "3"}},
		"steps in their order":                {steps: `[{set: {path: spec.replicas, value: 1}}, {cel: {path: spec.replicas, expression: "value + 1"}}, {template: {path: spec.text, template: "{{ .Object.spec.replicas }}"}}]`, what: "spec.text", want: "2"},
		"status":                              {steps: `[{set: {path: status.phase, value: Ready}}]`, what: "status", want: map[string]any{"phase": "Ready"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed, beside := fixtures.Map(t, deployment), fixtures.Map(t, other)
			if test.noOther {
				beside = nil
			}
			if err := compile(t, test.steps).Run(changed, inputs(beside)); err != nil {
				t.Fatal(err)
			}
			if got := at(changed, test.what); !reflect.DeepEqual(got, test.want) {
				t.Errorf("want %#v, got %#v", test.want, got)
			}
			if !test.noOther && !reflect.DeepEqual(beside, fixtures.Map(t, other)) {
				t.Errorf("the other object changed: %v", beside)
			}
		})
	}
}

// inputs returns the inputs of a program, with a SyncTarget.
func inputs(other map[string]any) mutation.Inputs {
	return mutation.Inputs{Other: other, SyncTarget: mutation.SyncTarget("florin", map[string]string{"region": "eu"}, map[string]string{"shop.example/size": "3"})}
}

// at returns a field by its path of names.
func at(object map[string]any, names string) any {
	var result any = object
	for name := range strings.SplitSeq(names, ".") {
		fields, _ := result.(map[string]any)
		result = fields[name]
	}
	return result
}

func TestRunFails(t *testing.T) {
	tests := map[string]struct {
		steps   string
		step    int
		path    string
		message string
	}{
		"regex on a number":         {`[{regex: {path: spec.replicas, pattern: "3"}}]`, 0, "spec.replicas", "is a number, but a regex replaces in text only"},
		"regex on a null":           {`[{regex: {path: spec.nothing, pattern: "3"}}]`, 0, "spec.nothing", "is null, but"},
		"regex on an item":          {`[{regex: {path: "spec.template.spec.containers[*]", pattern: "a"}}]`, 0, "spec.template.spec.containers[0]", "is a map, but"},
		"regex that grows":          {`[{cel: {path: spec.text, expression: "'0123456789'.replace('', '0123456789').replace('', '0123456789').replace('', '0123456789').replace('', '0123456789')"}}, {regex: {path: spec.text, pattern: "(?s).*", replacement: "` + strings.Repeat("$0", 2000) + `"}}]`, 1, "spec.text", "larger than"},
		"template":                  {`[{delete: {path: spec.replicas}}, {template: {path: spec.text, template: "{{ .Object.spec.replicas }}"}}]`, 1, "spec.text", `no entry for key "replicas"`},
		"template, the other":       {`[{template: {path: spec.text, template: "{{ .Other.spec.none }}"}}]`, 0, "spec.text", `no entry for key "none"`},
		"template, no value":        {`[{template: {path: spec.text, template: "{{ .Value }}"}}]`, 0, "spec.text", ".Value is null"},
		"cel":                       {`[{cel: {path: spec.replicas, expression: "value / 0"}}]`, 0, "spec.replicas", "division by zero"},
		"cel, for the second":       {`[{cel: {path: "spec.template.spec.containers[*].args", expression: "value.size()"}}]`, 0, "spec.template.spec.containers[1].args", "no such overload"},
		"set through a text":        {`[{set: {path: metadata.labels.app.x, value: 1}}]`, 0, "metadata.labels.app", "is text, but the path needs a map here"},
		"set through a list":        {`[{set: {path: spec.template.spec.containers.image, value: 1}}]`, 0, "spec.template.spec.containers", "is a list, but the path needs a map here"},
		"template, no such label":   {`[{template: {path: spec.text, template: "{{ .SyncTarget.metadata.labels.zone }}"}}]`, 0, "spec.text", `no entry for key "zone"`},
		"cel, no such label":        {`[{cel: {path: spec.text, expression: "syncTarget.metadata.labels.zone"}}]`, 0, "spec.text", "no such key: zone"},
		"a label of a number":       {`[{set: {path: metadata.labels.count, value: 1}}]`, 0, "metadata.labels['count']", "became a number, but must be text"},
		"labels of other types":     {`[{set: {path: metadata.labels, value: {b: true, a: [], c: x}}}]`, 0, "metadata.labels['a']", "became a list, but must be text"},
		"labels of a text":          {`[{set: {path: metadata.labels, value: x}}]`, 0, "metadata.labels", "became text, but must be a map"},
		"an annotation by cel":      {`[{set: {path: spec.a, value: 1}}, {cel: {path: metadata.annotations.count, expression: "self.spec.replicas"}}]`, 1, "metadata.annotations['count']", "became a number, but must be text"},
		"a null among annotations":  {`[{set: {path: metadata.annotations, value: {a: null}}}]`, 0, "metadata.annotations['a']", "became null, but must be text"},
		"what a range would become": {`[{cel: {path: spec.list, expression: "lists.range(10000000)"}}]`, 0, "spec.list", "lists.range would yield too much"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program := compile(t, test.steps)
			// The message does not depend on the order of a map.
			for range 10 {
				err := program.Run(fixtures.Map(t, deployment), inputs(fixtures.Map(t, other)))
				failed, ok := errors.AsType[*mutation.Error](err)
				if !ok {
					t.Fatalf("want an error of a step, got %v", err)
				}
				if failed.Step != test.step || failed.Path != test.path || !strings.Contains(failed.Err.Error(), test.message) {
					t.Fatalf("want %q in step %d at %s, got in %d at %s: %v", test.message, test.step, test.path, failed.Step, failed.Path, failed.Err)
				}
				if !strings.Contains(err.Error(), test.path) || !strings.Contains(err.Error(), test.message) {
					t.Fatalf("got the error %v", err)
				}
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := map[string]struct {
		steps    string
		messages []string
	}{
		"nothing":               {`[{}]`, []string{"[0]: exactly one of delete, set, regex, template and cel is required, not 0"}},
		"two at once":           {`[{delete: {path: spec}, set: {path: spec, value: 1}}]`, []string{"[0]: exactly one of delete, set, regex, template and cel is required, not 2"}},
		"a path to delete":      {`[{delete: {path: ".spec"}}]`, []string{`[0].delete.path: ".spec" is no path`}},
		"a path to set":         {`[{set: {path: "", value: 1}}]`, []string{`[0].set.path: `}},
		"a path of a regex":     {`[{regex: {path: "a..b", pattern: x}}]`, []string{`[0].regex.path: `}},
		"a path of a template":  {`[{template: {path: "a[", template: x}}]`, []string{`[0].template.path: `}},
		"a path of a cel":       {`[{cel: {path: "a[b]", expression: "1"}}]`, []string{`[0].cel.path: `}},
		"no value":              {`[{set: {path: spec.a}}]`, []string{`[0].set.value: must not be null: use delete`}},
		"a value of null":       {`[{set: {path: spec.a, value: null}}]`, []string{`[0].set.value: must not be null`}},
		"a pattern":             {`[{regex: {path: a, pattern: "("}}]`, []string{"[0].regex.pattern: error parsing regexp"}},
		"a template":            {`[{template: {path: a, template: "{{ .Nope }}"}}]`, []string{"[0].template.template: not a valid template: 1:3: there is no .Nope, only .Value, .Object, .Other"}},
		"an expression":         {`[{set: {path: a, value: 1}}, {set: {path: a, value: 1}}, {cel: {path: a, expression: "self +"}}]`, []string{"[2].cel.expression: not a valid CEL expression: ERROR: <input>:1:7"}},
		"all mistakes":          {`[{delete: {path: ""}}, {set: {path: a, value: 1}}, {}]`, []string{"[0].delete.path: ", "[2]: exactly one"}},
		"apiVersion":            {`[{set: {path: apiVersion, value: v1}}]`, []string{"[0].set.path: apiVersion, kind and metadata cannot be changed"}},
		"kind":                  {`[{delete: {path: kind}}]`, []string{"[0].delete.path: apiVersion, kind and metadata"}},
		"metadata":              {`[{set: {path: metadata, value: {}}}]`, []string{"apiVersion, kind and metadata cannot be changed"}},
		"the name":              {`[{template: {path: metadata.name, template: x}}]`, []string{"apiVersion, kind and metadata cannot be changed"}},
		"the name, quoted":      {`[{template: {path: "metadata['name']", template: x}}]`, []string{"apiVersion, kind and metadata cannot be changed"}},
		"what begins as labels": {`[{set: {path: metadata.labelsX, value: {}}}]`, []string{"apiVersion, kind and metadata cannot be changed"}},
		"finalizers":            {`[{cel: {path: "metadata.finalizers[0]", expression: "null"}}]`, []string{"apiVersion, kind and metadata cannot be changed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := mutation.Compile(steps(t, test.steps))
			if err == nil || program != nil {
				t.Fatalf("accepted: %v", err)
			}
			for _, message := range test.messages {
				if !strings.Contains(err.Error(), message) {
					t.Errorf("want %q in: %v", message, err)
				}
			}
		})
	}
}

func TestMetadataThatMayChange(t *testing.T) {
	for _, path := range []string{"metadata.labels", "metadata.labels.a", "metadata['labels'].a", "metadata.annotations['a.io/b']", "metadataX.name", "kinds", "spec.metadata.name", "data['kind']"} {
		if _, err := mutation.Compile([]synchubv1alpha1.MutationStep{{Delete: &synchubv1alpha1.DeleteMutation{Path: synchubv1alpha1.MutablePath(path)}}}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestProgramProperties(t *testing.T) {
	tests := map[string]struct {
		steps           string
		usesOther       bool
		usesSyncTarget  bool
		touches, leaves []string
	}{
		"no steps":            {steps: `[]`, leaves: []string{"spec", "status", ""}},
		"plain steps":         {steps: `[{set: {path: spec.a, value: 1}}, {delete: {path: "status['x']"}}]`, touches: []string{"spec", "status"}, leaves: []string{"metadata", "stat", "a"}},
		"a template":          {steps: `[{template: {path: data, template: "{{ .Object.other }}"}}]`, touches: []string{"data"}},
		"a template of other": {steps: `[{set: {path: a, value: 1}}, {template: {path: data, template: "{{ with .Other }}x{{ end }}"}}]`, usesOther: true, touches: []string{"a", "data"}},
		"cel":                 {steps: `[{cel: {path: "status[0]", expression: "self.other"}}]`, touches: []string{"status"}},
		"the SyncTarget":      {steps: `[{set: {path: a, value: 1}}, {cel: {path: b, expression: "syncTarget.metadata.name"}}]`, usesSyncTarget: true, touches: []string{"a", "b"}},
		"a template of it":    {steps: `[{template: {path: b, template: "{{ if .SyncTarget }}x{{ end }}"}}]`, usesSyncTarget: true, touches: []string{"b"}},
		"cel of other":        {steps: `[{cel: {path: a, expression: "other.?b"}}]`, usesOther: true, touches: []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program := compile(t, test.steps)
			if got := program.UsesOther(); got != test.usesOther {
				t.Errorf("uses other: %v", got)
			}
			if got := program.UsesSyncTarget(); got != test.usesSyncTarget {
				t.Errorf("uses the SyncTarget: %v", got)
			}
			for _, field := range test.touches {
				if !program.MayChangeField(field) {
					t.Errorf("does not touch %s", field)
				}
			}
			for _, field := range test.leaves {
				if program.MayChangeField(field) {
					t.Errorf("touches %s", field)
				}
			}
		})
	}
}

func TestNoSteps(t *testing.T) {
	program, err := mutation.Compile(nil)
	if program != nil || err != nil {
		t.Fatalf("%v, %v", program, err)
	}
	unchanged := fixtures.Map(t, deployment)
	if err := program.Run(unchanged, mutation.Inputs{}); err != nil || !reflect.DeepEqual(unchanged, fixtures.Map(t, deployment)) {
		t.Errorf("%v, %v", unchanged, err)
	}
}

// A program shares no memory with its steps, and its results share none with the program.
func TestProgramSharesNothing(t *testing.T) {
	given := steps(t, `[{set: {path: spec.a, value: {b: [1]}}}, {regex: {path: metadata.labels.app, pattern: w, replacement: v}}, {cel: {path: spec.c, expression: "other.spec"}}]`)
	program, err := mutation.Compile(given)
	if err != nil {
		t.Fatal(err)
	}
	first, beside := fixtures.Map(t, deployment), fixtures.Map(t, other)
	if err := program.Run(first, inputs(beside)); err != nil {
		t.Fatal(err)
	}
	want := runtime.DeepCopyJSON(first)

	at(first, "spec.a").(map[string]any)["b"].([]any)[0] = "scribbled"
	at(first, "spec.c").(map[string]any)["clusterIP"] = "scribbled"
	copy(given[0].Set.Value.Raw, "{\"x\":[9]}")
	given[0].Set.Path, given[1].Regex.Replacement, given[2].CEL.Expression = "spec.x", "scribbled", "1"

	second := fixtures.Map(t, deployment)
	if err := program.Run(second, inputs(beside)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(second, want) {
		t.Errorf("want %v, got %v", want, second)
	}
}
