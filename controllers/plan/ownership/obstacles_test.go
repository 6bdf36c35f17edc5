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

package ownership_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestObstacles(t *testing.T) {
	live := fixtures.Object(t, `{apiVersion: v1, kind: A, spec: {conversion: {webhook: {caBundle: x}}, tuning: {size: 1}, default: {a: b}, admitted: {a: b}, list: [{name: a}], mode: m}, status: {phase: x}}`)
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		managedFields("hub", metav1.ManagedFieldsOperationApply, "", `{"f:spec":{"f:mode":{},"f:conversion":{"f:strategy":{}}}}`),
		managedFields("hub", metav1.ManagedFieldsOperationUpdate, "", `{"f:spec":{"f:admitted":{"f:a":{}}}}`),
		managedFields("injector", metav1.ManagedFieldsOperationUpdate, "", `{"f:spec":{"f:conversion":{"f:webhook":{"f:caBundle":{}}}}}`),
		managedFields("tuner", metav1.ManagedFieldsOperationApply, "", `{"f:spec":{"f:tuning":{"f:size":{}}}}`),
		managedFields("kubelet", metav1.ManagedFieldsOperationUpdate, "status", `{"f:spec":{"f:default":{}},"f:status":{"f:phase":{}}}`),
	})
	desired := fixtures.Map(t, `{apiVersion: v1, kind: A, metadata: {name: a}, spec: {mode: n, list: []}}`)
	for field, want := range map[string]struct {
		path     string
		managers []string
		applied  bool
	}{
		"spec.conversion.webhookClientConfig": {"spec.conversion", []string{"injector"}, true},
		"spec.conversion":                     {"spec.conversion", []string{"injector"}, true},
		"spec.tuning.size":                    {"spec.tuning", []string{"tuner"}, false},
		"spec.default.a":                      {"spec.default", nil, false},
		"spec.admitted.a":                     {"spec.admitted", nil, true},
		"spec.mode":                           {},
		"spec.mode.a":                         {},
		"spec.absent":                         {},
		"spec.list[0].name":                   {},
		"spec.other[0].name":                  {},
		"status.phase":                        {},
		"metadata.name":                       {},
		"<nil>":                               {},
		"":                                    {},
	} {
		obstacles := ownership.Obstacles(desired, live, "hub", []string{field, field})
		if want.path == "" {
			if len(obstacles) != 0 {
				t.Errorf("%s: %v", field, obstacles)
			}
			continue
		}
		if len(obstacles) != 1 || obstacles[0].Path.String() != want.path || !slices.Equal(obstacles[0].Managers, want.managers) || obstacles[0].Applied != want.applied {
			t.Errorf("%s: %+v", field, obstacles)
		}
		if !ownership.MayHaveObstacles(desired, []string{"spec.mode", field}) {
			t.Errorf("%s: nothing is missing", field)
		}
	}
	if ownership.MayHaveObstacles(desired, []string{"spec.mode", "spec.list[0].name", "metadata.name"}) {
		t.Error("something is missing")
	}
}

func TestTakeFields(t *testing.T) {
	hub := managedFields("hub", metav1.ManagedFieldsOperationApply, "", `{"f:spec":{"f:mode":{}}}`)
	injector := managedFields("injector", metav1.ManagedFieldsOperationUpdate, "", `{"f:spec":{"f:conversion":{"f:caBundle":{}}}}`)
	both := managedFields("both", metav1.ManagedFieldsOperationApply, "", `{"f:spec":{"f:conversion":{"f:caBundle":{}},"f:other":{}}}`)
	status := managedFields("hub", metav1.ManagedFieldsOperationUpdate, "status", `{"f:spec":{"f:conversion":{}}}`)
	path, err := fieldpath.Parse("spec.conversion")
	if err != nil {
		t.Fatal(err)
	}
	taken, changed := ownership.TakeFields([]metav1.ManagedFieldsEntry{injector, hub, both, status}, "hub", []fieldpath.Path{path})
	want := []string{`hub {"f:spec":{"f:conversion":{},"f:mode":{}}}`, `both {"f:spec":{"f:other":{}}}`, `hub {"f:spec":{"f:conversion":{}}}`}
	var got []string
	for _, entry := range taken {
		got = append(got, entry.Manager+" "+entry.FieldsV1.GetRawString())
	}
	if !changed || !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if same, changed := ownership.TakeFields([]metav1.ManagedFieldsEntry{injector, both}, "hub", []fieldpath.Path{path}); changed || len(same) != 2 {
		t.Error("a manager without an entry takes something")
	}
}

func managedFields(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}
