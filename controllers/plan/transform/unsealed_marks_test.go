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

package transform_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/tier"
)

// formerMarks are marks that hubs wrote before there were rules that transform objects. If one of them changed for an object
// without a rule, each hub would write all its objects again after an upgrade.
var formerMarks = map[string]string{ //nolint:gosec // no credentials: hashes of what stands beside them
	"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u1, resourceVersion: '7', labels: {app: web}}, spec: {replicas: 2, template: {spec: {containers: [{name: app, image: web:1}]}}}, status: {replicas: 1}}": `{"v":1,"hub":"hub-uid","syncTarget":"target-uid","mailbox":"2f5wd0xyz","source":{"group":"apps","resource":"deployments","namespace":"shop","name":"web","uid":"u1"},"self":{"group":"apps","kind":"Deployment","namespace":"shop","name":"web"},"policy":"Delete","hash":"1:ie23XjjC3u2EfeGPfZ9RnYtu"}`,
	"{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, uid: u2}, type: Opaque, data: {a: YQ==}, stringData: {b: new}}":                                                                                                          `{"v":1,"hub":"hub-uid","syncTarget":"target-uid","mailbox":"2f5wd0xyz","source":{"group":"apps","resource":"deployments","namespace":"shop","name":"s","uid":"u2"},"self":{"kind":"Secret","namespace":"shop","name":"s"},"policy":"Delete","hash":"1:NR0sgCUcR51F7yJ-JMCLNUfl"}`,
	"{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u3, labels: {team: a}}}":                                                                                                                                                       `{"v":1,"hub":"hub-uid","syncTarget":"target-uid","mailbox":"2f5wd0xyz","source":{"group":"apps","resource":"deployments","name":"shop","uid":"u3"},"self":{"kind":"Namespace","name":"shop"},"policy":"Delete","hash":"1:kut2G7Mj0ikixWExGtqstCLF"}`,
}

// formerSum is the hash of these hubs' desired objects for the first two thousand seeds, in both directions, with marks.
const formerSum = "5481f17a2c666901c094205b6cbbb5be76d1a3f8a083a8390e0f0250f0619018"

// emptySpecs are specs that change no object.
func emptySpecs(source *unstructured.Unstructured, policy ownership.Policy) map[string]transform.SyncSpec {
	return map[string]transform.SyncSpec{
		"no more than the policy": {Policy: policy},
		"the kind it has anyway":  {Policy: policy, Kind: source.GroupVersionKind()},
		"empty lists":             {Policy: policy, IgnoredFields: []transform.IgnoredField{}, Variables: map[string]any{"Primary": nil}, Inputs: mutation.Inputs{Other: map[string]any{"spec": "x"}}},
	}
}

// asUnsealedMark replaces the mark by its form before marks were sealed, and returns it.
func asUnsealedMark(desired *transform.Desired) string {
	former := desired.Mark
	former.Version, former.SourceVersion = 1, 0
	annotations := desired.Object.GetAnnotations()
	annotations[ownership.MarkAnnotation] = former.String()
	desired.Object.SetAnnotations(annotations)
	return former.String()
}

func TestMarksOfFormerHubs(t *testing.T) {
	for text, want := range formerMarks {
		for name, spec := range emptySpecs(fixtures.Object(t, text), ownership.PolicyDelete) {
			desired, err := down.Desired(fixtures.Object(t, text), spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := asUnsealedMark(desired); got != want || desired.Object.GetAnnotations()[ownership.MarkAnnotation] != want {
				t.Errorf("%s: want %s\ngot  %s", name, want, got)
			}
		}
	}
}

func withoutNulls(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, item := range typed {
			if item != nil {
				result[key] = withoutNulls(item)
			}
		}
		return result
	case []any:
		result := []any{}
		for _, item := range typed {
			if item != nil {
				result = append(result, withoutNulls(item))
			}
		}
		return result
	default:
		return value
	}
}

func TestObjectsOfFormerHubs(t *testing.T) {
	tier.Thorough(t)
	sums := map[string]hash.Hash{}
	write := func(name string, desired *transform.Desired, err error) {
		if sums[name] == nil {
			sums[name] = sha256.New()
		}
		if err != nil {
			fmt.Fprintln(sums[name], "refused")
			return
		}
		mark := asUnsealedMark(desired)
		data, err := json.Marshal(desired.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(sums[name], mark, string(data))
	}
	up := transform.Up{
		Owner: down.Owner, Mailbox: down.Mailbox, Hasher: down.Hasher,
		Resource: schema.GroupResource{Group: "apps", Resource: "raised"}, Version: "v7", Kind: "Raised",
	}
	for seed := range uint64(2000) {
		source := seeded(seed).source()
		// Former hubs synced their own keys if they were misplaced: a label as an annotation, and an annotation as a label.
		unstructured.RemoveNestedField(source.Object, "metadata", "labels", ownership.MarkAnnotation)
		unstructured.RemoveNestedField(source.Object, "metadata", "labels", ownership.EnsuredAnnotation)
		unstructured.RemoveNestedField(source.Object, "metadata", "annotations", ownership.OwnerLabel)
		// Former hubs also dropped nulls.
		source.Object, _ = withoutNulls(source.Object).(map[string]any)
		for name, spec := range emptySpecs(source, ownership.PolicyDelete) {
			desired, err := down.Desired(source, spec)
			write(name, desired, err)
			spec.Policy = ownership.PolicyOrphan
			desired, err = up.Desired(source, targetResource, spec)
			write(name, desired, err)
		}
	}
	for name, sum := range sums {
		if got := hex.EncodeToString(sum.Sum(nil)); got != formerSum {
			t.Errorf("%s: want %s, got %s", name, formerSum, got)
		}
	}
}
