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
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// describe returns differences as text.
func describe(differences []transform.Difference) (texts []string) {
	for _, one := range differences {
		observed := fmt.Sprint(one.Observed)
		if one.IsAbsent {
			observed = "absent"
		}
		texts = append(texts, fmt.Sprintf("%s %v: %v, %s", one.Path, one.Managers, one.Desired, observed))
	}
	return texts
}

func TestDriftDifferences(t *testing.T) {
	const hub = "hub"
	desired := fixtures.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app.kubernetes.io/name: web}}, spec: {replicas: 2, paused: false, template: {spec: {
  containers: [{name: app, image: 'web:1', resources: {limits: {cpu: 1000m}}}, {name: side, image: 'side:1'}]}}}}`).Object
	live := fixtures.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app.kubernetes.io/name: shop}, managedFields: [
  {manager: hub, operation: Apply, fieldsV1: {f:metadata: {f:labels: {f:theirs: {}}}, f:spec: {f:template: {f:spec: {f:containers: {'k:{"name":"app"}': {.: {}, f:name: {}}}}}}}},
  {manager: kubectl-edit, operation: Update, fieldsV1: {f:metadata: {f:labels: {f:app.kubernetes.io/name: {}}}, f:spec: {f:template: {f:spec: {f:containers: {'k:{"name":"app"}': {f:image: {}, f:resources: {f:limits: {f:cpu: {}}}}}}}}}},
  {manager: hub, operation: Update, fieldsV1: {f:spec: {f:replicas: {}}}},
  {manager: autoscaler, operation: Update, fieldsV1: {f:spec: {f:replicas: {}, f:paused: {}}}}]},
spec: {replicas: 7, paused: false, template: {spec: {containers: [{name: app, image: 'web:2', resources: {limits: {cpu: '1'}}}]}}}}`)
	paths, err := ownership.UnownedPaths(desired, ownership.AppliedFields(live, hub))
	if err != nil {
		t.Fatal(err)
	}
	got, err := transform.Drift(desired, live, hub, paths)
	want := []string{
		".metadata.labels.app.kubernetes.io/name [kubectl-edit]: web, shop",
		".spec.replicas [autoscaler]: 2, 7",
		`.spec.template.spec.containers[name="app"].image [kubectl-edit]: web:1, web:2`,
		`.spec.template.spec.containers[name="side"] []: map[image:side:1 name:side], absent`,
	}
	if err != nil || !slices.Equal(describe(got), want) {
		t.Errorf("%v\nwant %q\ngot  %q", err, want, describe(got))
	}
	if got, err := transform.Drift(desired, live, hub, []string{".spec.replicas"}); err != nil || len(got) != 1 {
		t.Errorf("one path: %q, %v", describe(got), err)
	}
}

func TestAdoptionChanges(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		return fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, "+text)
	}
	live := object(`resourceVersion: '1', managedFields: [{manager: kubectl, operation: Update, fieldsV1: {f:data: {f:a: {}, f:b: {}}}},
  {manager: hub, operation: Apply, fieldsV1: {f:data: {f:a: {}}}}]}, data: {a: theirs, b: same, c: more}}`)
	applied := object(`resourceVersion: '2', labels: {synchub.dev/owner: o, app: x}, annotations: {synchub.dev/mark: m}}, data: {a: ours, b: same, c: more, d: new, e: ignored}}`)
	got := transform.AdoptionChanges(applied, live, ignoring(t, "data.e"), "hub")
	if want := []string{".data.a [kubectl]: ours, theirs", ".data.d []: new, absent", ".metadata.labels []: map[app:x], absent"}; !slices.Equal(describe(got), want) {
		t.Errorf("want %q\ngot  %q", want, describe(got))
	}
	annotated := object("annotations: {note: x}}}")
	marked := object("annotations: {note: x, synchub.dev/finished: f, synchub.dev/mark: m}}}")
	if got := transform.AdoptionChanges(marked, annotated, nil, "hub"); len(got) > 0 {
		t.Errorf("of the marks: %q", describe(got))
	}
	if got := transform.AdoptionChanges(live, live, nil, "hub"); len(got) > 0 {
		t.Errorf("of nothing: %q", describe(got))
	}
}
