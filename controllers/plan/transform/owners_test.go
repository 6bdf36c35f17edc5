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
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// The owners of a target object are recorded, and not more than a few. An annotation of the target does not count.
func TestRecordedOwners(t *testing.T) {
	t.Parallel()
	up := transform.Up{Resource: schema.GroupResource{Resource: "pods"}, Version: "v1", Kind: "Pod", Namespaced: true, Hasher: ownership.NewHasher([]byte("key")), RecordsOwners: true}
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	pod.SetName("web")
	pod.SetNamespace("shop")
	pod.SetAnnotations(map[string]string{transform.OwnersAnnotation: `[{"kind": "Forged"}]`})
	record := func() []transform.OwnerRecord {
		desired, err := up.Desired(pod, up.Resource, transform.SyncSpec{})
		if err != nil {
			t.Fatal(err)
		}
		return transform.OwnersOf(desired.Object)
	}
	if got := record(); len(got) != 0 {
		t.Errorf("without owners: %v", got)
	}
	pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: new(true)}})
	if got := record(); len(got) != 1 || got[0] != (transform.OwnerRecord{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: true}) {
		t.Errorf("one owner: %v", got)
	}
	pod.SetOwnerReferences(make([]metav1.OwnerReference, 100))
	if got := record(); len(got) > 10 {
		t.Errorf("%d owners are recorded", len(got))
	}
	pod.SetAnnotations(map[string]string{transform.OwnersAnnotation: "forged"})
	if got := transform.OwnersOf(pod); got != nil {
		t.Errorf("a forged record: %v", got)
	}
	if up.RecordsOwners = false; len(record()) != 0 {
		t.Error("owners are recorded")
	}
}
