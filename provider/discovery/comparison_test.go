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

package discovery_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// droppedFields are the fields that the cluster removes without validation, because their feature gates are off.
var droppedFields = []string{
	"resource.k8s.io/v1 ResourceClaim .spec.devices.requests[0].exactly.tolerations[0].effect",
	"resource.k8s.io/v1 ResourceClaim .spec.devices.requests[0].exactly.tolerations[0].operator",
	"v1 Pod .spec.containers[0].lifecycle.stopSignal",
}

// index matches the index of an item in a path.
var index = regexp.MustCompile(`\[\d+\]`)

// podTemplate matches paths in the pod template of a workload. It is the same in all workloads, and half of all variants
// are in it.
var podTemplate = regexp.MustCompile(`\.template\.spec\.`)

// variant is a sample with one change.
type variant struct {
	path, description string
	object            *unstructured.Unstructured
}

// variantsOf returns variants of an object: for each field one without it, one with null, and some with other values. It
// changes only one item of a list, if the same change of another item would have the same path without indexes.
func variantsOf(object *unstructured.Unstructured) (all []variant) {
	seen := map[string]bool{}
	var visit func(path string, value any, set func(any), remove func())
	visit = func(path string, value any, set func(any), remove func()) {
		emit := func(what string) {
			if same := index.ReplaceAllString(path, "[]") + what; !seen[same] {
				seen[same] = true
				all = append(all, variant{path, what, object.DeepCopy()})
			}
		}
		if remove != nil {
			remove()
			emit("nothing")
		}
		for _, other := range otherValues(value) {
			set(other)
			emit(fmt.Sprintf("%#v", other))
		}
		set(value)
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				visit(path+"."+key, value[key], func(other any) { value[key] = other }, func() { delete(value, key) })
			}
		case []any:
			for i := range value {
				visit(path+"["+strconv.Itoa(i)+"]", value[i], func(other any) { value[i] = other }, nil)
			}
		}
	}
	object = object.DeepCopy()
	for _, key := range slices.Sorted(maps.Keys(object.Object)) {
		if key != "apiVersion" && key != "kind" && key != "metadata" {
			visit("."+key, object.Object[key], func(other any) { object.Object[key] = other }, func() { delete(object.Object, key) })
		}
	}
	return all
}

func otherValues(value any) []any {
	switch value := value.(type) {
	case string:
		return []any{nil, "", "other"}
	case int64:
		return []any{nil, int64(0), 1.5, strconv.FormatInt(value, 10)}
	case float64:
		return []any{nil, int64(0), strconv.FormatFloat(value, 'g', -1, 64)}
	case bool:
		return []any{nil, !value}
	case []any:
		return []any{nil, []any{}, append(slices.Clone(value), runtime.DeepCopyJSONValue(value).([]any)...)}
	case map[string]any:
		return []any{nil, map[string]any{}}
	}
	return nil
}

// The schema accepts each object that the cluster accepts, and the cluster's response to it. Exceptions are objects that
// the hub could not apply on the cluster: duplicates in a list whose items have keys, and null as a key.
func TestSchemasAcceptLikeTheCluster(t *testing.T) {
	tier.Thorough(t)
	client := suite.Dynamic(t, cluster(t))
	var mu sync.Mutex
	var found []string
	t.Run("kinds", func(t *testing.T) {
		for _, kind := range builtins(t) {
			t.Run(kind.String(), func(t *testing.T) {
				t.Parallel()
				difference := &comparison{validator: newSchemaValidator(t, kind.crd.Spec.Versions[0]), kind: kind, client: client}
				var group errgroup.Group
				group.SetLimit(4)
				for _, change := range variantsOf(sampleOf(t, kind.GroupVersionKind)) {
					if podTemplate.MatchString(change.path) && kind.Kind != "Deployment" {
						continue
					}
					group.Go(func() error {
						fault, err := difference.compare(t, change)
						if fault != nil {
							t.Logf("the cluster accepts %s for %s, the schema does not: %v", change.description, change.path, fault)
							mu.Lock()
							found = append(found, kind.String()+" "+change.path)
							mu.Unlock()
						}
						return err
					})
				}
				if err := group.Wait(); err != nil {
					t.Error(err)
				}
			})
		}
	})
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, droppedFields) {
		t.Errorf("the cluster accepts more than the schema for\n%v\nwanted\n%v", found, droppedFields)
	}
}

// comparison validates objects of a kind with the cluster and with a schema.
type comparison struct {
	validator schemaValidator
	kind      builtin
	client    dynamic.Interface
	// checked are the objects that were compared before. The cluster's responses to many variants are equal.
	checked sync.Map
}

// compare returns the error of the schema for a variant that the cluster accepts, or for the cluster's response to it.
func (d *comparison) compare(t *testing.T, change variant) (fault, err error) {
	dryRun := []string{metav1.DryRunAll}
	resource := d.client.Resource(d.kind.resource).Namespace(change.object.GetNamespace())
	response, refusal := resource.Create(t.Context(), change.object, metav1.CreateOptions{DryRun: dryRun})
	if refusal != nil {
		return nil, nil //nolint:nilerr // the schema may accept or refuse an object that the cluster refuses
	}
	response.SetUID("")
	response.SetManagedFields(nil)
	for _, object := range []*unstructured.Unstructured{change.object, response} {
		content, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		if _, done := d.checked.LoadOrStore(string(content), nil); done {
			continue
		}
		if _, fault = d.validator.validate(object); fault == nil {
			continue
		}
		applied := &unstructured.Unstructured{Object: withoutNulls(object.Object).(map[string]any)}
		_, refusal := resource.Apply(t.Context(), object.GetName(), applied, metav1.ApplyOptions{FieldManager: "test", DryRun: dryRun})
		if refusal == nil {
			return fault, nil
		}
	}
	return nil, nil
}
