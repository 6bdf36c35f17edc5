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
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
)

// schemaSink is a fake sync manager that only takes schemas.
type schemaSink struct {
	*syncmanager.Manager
	taken []map[schema.GroupResource]schemacheck.Schema
}

func (s *schemaSink) SetSchemas(schemas map[schema.GroupResource]schemacheck.Schema) {
	s.taken = append(s.taken, schemas)
}

func (s *schemaSink) Published() []plan.Resource { return nil }

// describe gives each version of each schema its own description.
func (w *fixture) describe() {
	for name, plan := range w.schemas {
		for i := range plan.Spec.Versions {
			if err := plan.Spec.Versions[i].SetSchema(&apiextensionsv1.JSONSchemaProps{Type: "object", Description: name + plan.Spec.Versions[i].Name}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// The schemas of the synced resources are passed to the sync manager once for each change; claims are not.
func TestSetSchemas(t *testing.T) {
	w := newFixture(t)
	w.describe()
	w.schemas["s-clusters.c.io"].Spec.Versions[0].Schema.Raw = []byte("no JSON")
	sink := &schemaSink{}
	controller := &Controller{Options: Options{Sync: sink}, planner: w.planner}
	set := func(resources ...synchubv1alpha1.PublishedResource) {
		t.Helper()
		made, err := w.planner.newPlan(t.Context(), slices.Clone(resources), &w.export)
		if err != nil {
			t.Fatal(err)
		}
		if err := controller.updateSchemas(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	all := []synchubv1alpha1.PublishedResource{
		resource(t, "a", "s-as.a.io", `{resource: {group: a.io, resource: as, version: v1}, compatibility: Warn}`),
		resource(t, "b", "s-bs.b.io", `{resource: {group: b.io, resource: bs}}`),
		resource(t, "broken", "s-clusters.c.io", `{resource: {group: c.io, resource: clusters}}`),
		resource(t, "native", "", `{resource: {resource: configmaps}}`),
	}
	set(all...)
	set(all...)
	if len(sink.taken) != 1 {
		t.Fatalf("schemas were set %d times", len(sink.taken))
	}
	as, bs := schema.GroupResource{Group: "a.io", Resource: "as"}, schema.GroupResource{Group: "b.io", Resource: "bs"}
	first := sink.taken[0]
	if got := slices.Collect(maps.Keys(first)); len(got) != 2 {
		t.Errorf("schemas of %v", got)
	}
	if a := first[as]; a.Name != "s-as.a.io" || a.Version != "v1" || !a.WarnOnly || a.OpenAPI.Description != "s-as.a.iov1" {
		t.Errorf("%+v", a)
	}
	if b := first[bs]; b.Name != "s-bs.b.io" || b.WarnOnly {
		t.Errorf("%+v", b)
	}
	all[0].Spec.Compatibility = synchubv1alpha1.CompatibilityStrict
	set(all...)
	if len(sink.taken) != 2 || sink.taken[1][as].WarnOnly || sink.taken[1][as].OpenAPI != first[as].OpenAPI {
		t.Errorf("after a change: %+v", sink.taken)
	}
}
