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
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// The parts of random steps.
var (
	paths = []synchubv1alpha1.MutablePath{
		"spec", "spec.replicas", "spec.text", "spec.a.b", "spec.list[*]", "spec.list[1]", `spec.list[?(@.name=="a")].value`, "spec.list[*].value", "spec.grid[*][0]",
		"metadata.labels", "metadata.labels.app", "metadata.annotations['a.io/b']", "status.phase", "data['x.y']", "spec.list.value", "spec.replicas.deep",
	}
	values      = []string{`1`, `2.5`, `"text"`, `true`, `{"a":"b"}`, `[{"name":"a","value":1},{"name":"b"}]`, `[[1,2],[]]`, `{}`, `"3"`}
	patterns    = []string{`a`, `^t(e)x`, `.*`, `[0-9]+`, ``}
	expressions = []string{
		`value`, `self`, `other`, `null`, `self.spec.replicas + 1`, `value == null ? "new" : value`, `{"a": self.?spec.text.orValue("none")}`, `self.metadata.labels.map(k, k)`,
		`self.spec.list.filter(i, has(i.value))`, `other.spec`, `string(self.spec.replicas)`, `[self.?spec.orValue(1), other]`, `self.spec.list.size() * 2`, `self.?metadata.labels.app`,
	}
	templates = []string{
		`{{ .Value }}`, `{{ .Object.metadata.name }}-x`, `{{ toJson .Other }}`, `{{ .Value | default "none" | quote }}`, `{{ range $k, $v := .Object.metadata.labels }}{{ $k }}{{ $v }}{{ end }}`,
		`{{ dig "spec" "text" "none" .Object | upper }}`, `{{ keys .Object.spec | join "," | sha3short }}`,
	}
)

func randomSteps(random *rand.Rand) []synchubv1alpha1.MutationStep {
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	result := make([]synchubv1alpha1.MutationStep, 1+random.IntN(3))
	for number := range result {
		path := paths[random.IntN(len(paths))]
		step := &result[number]
		switch random.IntN(7) {
		case 0:
			step.Delete = &synchubv1alpha1.DeleteMutation{Path: path}
		case 1, 2:
			step.Set = &synchubv1alpha1.SetMutation{Path: path, Value: apiextensionsv1.JSON{Raw: []byte(pick(values))}}
		case 3:
			step.Regex = &synchubv1alpha1.RegexMutation{Path: path, RegexRewrite: synchubv1alpha1.RegexRewrite{Pattern: pick(patterns), Replacement: "<$0>"}}
		case 4:
			step.Template = &synchubv1alpha1.TemplateMutation{Path: path, Template: pick(templates)}
		default:
			step.CEL = &synchubv1alpha1.CELMutation{Path: path, Expression: pick(expressions)}
		}
	}
	return result
}

func randomObject(random *rand.Rand) map[string]any {
	result := map[string]any{
		"apiVersion": "v1", "kind": "Thing",
		"metadata": map[string]any{"name": "thing", "uid": "u", "labels": map[string]any{"app": "a", "tier": "b", "zone": "c"}, "finalizers": []any{"x"}},
	}
	for _, field := range []string{"spec", "status", "data"} {
		if random.IntN(4) > 0 {
			fields := map[string]any{}
			for _, name := range []string{"replicas", "text", "a", "list", "grid", "phase", "x.y"} {
				if random.IntN(3) > 0 {
					var value any
					_ = kubejson.Unmarshal([]byte(values[random.IntN(len(values))]), &value)
					fields[name] = value
				}
			}
			result[field] = fields
		}
	}
	return result
}

// identity returns the parts of an object that no step may change.
func identity(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	return fmt.Sprint(object["apiVersion"], object["kind"], metadata["name"], metadata["uid"], metadata["finalizers"], len(metadata))
}

// The result depends only on the arguments, for any steps and objects.
func TestRunDependsOnItsArgumentsOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // the same steps in every run
	succeeded, changed := 0, 0
	const tries = 1000
	for range tries {
		given := randomSteps(random)
		program, err := mutation.Compile(given)
		if err != nil {
			t.Fatal(err)
		}
		before, beside := randomObject(random), randomObject(random)
		if random.IntN(4) == 0 {
			beside = nil
		}
		stepsBefore, besideBefore := fmt.Sprint(deepCopy(given)), runtime.DeepCopyJSON(beside)
		first, second := runtime.DeepCopyJSON(before), runtime.DeepCopyJSON(before)

		err = program.Run(first, inputs(beside))
		if !reflect.DeepEqual(beside, besideBefore) {
			t.Fatalf("%v changed the other object", stepsBefore)
		}
		again, errAgain := second, program.Run(second, inputs(runtime.DeepCopyJSON(beside)))
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || err == nil && !reflect.DeepEqual(first, again) {
			t.Fatalf("%v made of %v first %v, %v\nand then %v, %v", stepsBefore, before, first, err, again, errAgain)
		}
		if fmt.Sprint(deepCopy(given)) != stepsBefore {
			t.Fatalf("the steps became %v", given)
		}
		if err != nil {
			continue
		}
		succeeded++
		if !reflect.DeepEqual(first, before) {
			changed++
		}
		checkResult(t, before, first)
		fixtures.Scribble(first)
		if !reflect.DeepEqual(beside, besideBefore) {
			t.Fatalf("%v made the objects share parts", stepsBefore)
		}
	}
	if succeeded < tries/4 || changed < tries/5 || succeeded > tries*9/10 {
		t.Errorf("%d of %d succeeded and %d changed something: that tries too little", succeeded, tries, changed)
	}
}

func checkResult(t *testing.T, before, after map[string]any) {
	t.Helper()
	wasLabelled, isLabelled := hasMetadata(before), hasMetadata(after)
	if identity(before) != identity(after) && wasLabelled == isLabelled {
		t.Fatalf("%s became %s", identity(before), identity(after))
	}
	runtime.DeepCopyJSON(after) // panics on a value that is not JSON
	text, err := json.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := kubejson.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, after) {
		t.Fatalf("%v is decoded as %v", after, back)
	}
}

// hasMetadata counts the parts of metadata that steps may add or remove.
func hasMetadata(object map[string]any) (count int) {
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		if _, ok := metadata[field]; ok {
			count++
		}
	}
	return count
}

func deepCopy(given []synchubv1alpha1.MutationStep) string {
	text, err := json.Marshal(given)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// All workers share one program.
func TestRunConcurrently(t *testing.T) {
	program := compile(t, `[{set: {path: spec.a, value: {b: [1]}}}, {template: {path: metadata.labels.app, template: "{{ .Value }}-{{ .Other.metadata.resourceVersion }}"}},
		{cel: {path: spec.keys, expression: "self.metadata.labels.map(k, k + other.metadata.resourceVersion)"}}, {regex: {path: "spec.keys[*]", pattern: "7", replacement: "8"}}]`)
	want := fixtures.Map(t, deployment)
	beside := fixtures.Map(t, other)
	if err := program.Run(want, inputs(beside)); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				changed := fixtures.Map(t, deployment)
				if err := program.Run(changed, inputs(beside)); err != nil || !reflect.DeepEqual(changed, want) {
					t.Errorf("%v, %v", changed, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkRun(b *testing.B) {
	for name, text := range map[string]string{
		"delete":   `[{delete: {path: metadata.labels.tier}}]`,
		"set":      `[{set: {path: spec.replicas, value: 5}}]`,
		"regex":    `[{regex: {path: "spec.template.spec.containers[*].image", pattern: "^docker\\.io/", replacement: "mirror.local/"}}]`,
		"template": `[{template: {path: metadata.labels.app, template: "{{ .Object.metadata.name }}-{{ .Object.metadata.namespace }}"}}]`,
		"cel":      `[{cel: {path: spec.replicas, expression: "self.spec.template.spec.containers.size() + 1"}}]`,
	} {
		b.Run(name, func(b *testing.B) {
			program, source := compile(b, text), fixtures.Map(b, deployment)
			b.ReportAllocs()
			for b.Loop() {
				if err := program.Run(source, inputs(nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for name, text := range map[string]string{
		"template": `[{template: {path: metadata.labels.app, template: "{{ .Object.metadata.name }}-{{ .Object.metadata.namespace }}"}}]`,
		"cel":      `[{cel: {path: spec.replicas, expression: "self.spec.template.spec.containers.size() + 1"}}]`,
	} {
		b.Run(name, func(b *testing.B) {
			given := steps(b, text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := mutation.Compile(given); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
