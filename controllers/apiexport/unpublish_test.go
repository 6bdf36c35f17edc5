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

package apiexport

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// A terminating PublishedResource whose mailbox objects wait for their targets only removes finalizers.
func TestPlanOfUnpublishing(t *testing.T) {
	spec := specWithRelated("resource: {version: v1, resource: secrets}") + "\ndeletion: {waitForTarget: true}"
	for name, test := range map[string]struct {
		change          func(*synchubv1alpha1.PublishedResource)
		claimed, synced string
		watched         string
	}{
		"valid":                 {func(*synchubv1alpha1.PublishedResource) {}, "a Exported/Ready", "as.a.io", "as.a.io/v2"},
		"invalid":               {func(r *synchubv1alpha1.PublishedResource) { r.Spec.Filter = &synchubv1alpha1.Filter{CEL: "("} }, "a Exported/Ready", "as.a.io", "as.a.io/v2"},
		"without its finalizer": {func(r *synchubv1alpha1.PublishedResource) { r.Finalizers = nil }, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.want(w.plan(resource(t, "a", "s-as.a.io", spec)), "a Exported/Ready", "s-as.a.io secrets", "as.a.io/v2 secrets/v1", "as.a.io secrets+")
			going := resource(t, "a", "s-as.a.io", spec)
			going.DeletionTimestamp, going.Finalizers = &metav1.Time{}, []string{Finalizer}
			test.change(&going)
			made, err := w.planner.newPlan(t.Context(), []synchubv1alpha1.PublishedResource{going}, &w.export)
			if err != nil {
				t.Fatal(err)
			}
			for _, synced := range made.syncedResources() {
				if !synced.Unpublishing || !synced.Exported || synced.Rules != nil {
					t.Errorf("got %+v", synced)
				}
			}
			w.want(w.execute(made), test.claimed, "s-as.a.io secrets", test.watched, test.synced)
		})
	}
}
