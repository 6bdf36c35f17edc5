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
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

var targetResource = schema.GroupResource{Group: "target.example", Resource: "things"}

// upFor returns the transformation that upsyncs objects like this mailbox object.
func upFor(mailbox *unstructured.Unstructured) transform.Up {
	gvk := mailbox.GroupVersionKind()
	return transform.Up{
		Owner: down.Owner, Mailbox: down.Mailbox, Hasher: down.Hasher,
		Resource: schema.GroupResource{Group: gvk.Group, Resource: "raised"}, Version: gvk.Version, Kind: gvk.Kind,
	}
}

func withoutUID(object map[string]any) map[string]any {
	result := (&unstructured.Unstructured{Object: object}).DeepCopy()
	unstructured.RemoveNestedField(result.Object, "metadata", "uid")
	return result.Object
}

// How an object is synced goes with the copies that placements make to the mailbox. It goes no further, and a cluster cannot set it.
func TestSettingsTravelWithPlacements(t *testing.T) {
	source := fixtures.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop, uid: u,
  annotations: {synchub.dev/drift: Report, synchub.dev/ignore-fields: data.a, synchub.dev/other: x, note: x}}}`)
	settings := map[string]any{"synchub.dev/drift": "Report", "synchub.dev/ignore-fields": "data.a", "note": "x"}
	placements, clusters := upFor(source), upFor(source)
	placements.KeepsSettings = true
	desired := func(up transform.Up) *transform.Desired {
		t.Helper()
		desired, err := up.Desired(source, schema.GroupResource{Resource: "configmaps"}, transform.SyncSpec{})
		if err != nil {
			t.Fatal(err)
		}
		return desired
	}
	for name, c := range map[string]struct {
		desired *transform.Desired
		want    map[string]any
	}{
		"a copy of a placement": {desired(placements), settings},
		"up from a cluster":     {desired(clusters), map[string]any{"note": "x"}},
		"down to a cluster":     {desiredFor(t, source), map[string]any{"note": "x"}},
	} {
		got, _, _ := unstructured.NestedMap(c.desired.Object.Object, "metadata", "annotations")
		delete(got, ownership.MarkAnnotation)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: want %v, got %v", name, c.want, got)
		}
	}
}

func TestUp(t *testing.T) {
	mark := desiredFor(t, fixtures.Object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u}}"))
	for name, test := range map[string]struct{ target, want string }{
		"all that belongs to the target stays there": {
			target: `
apiVersion: reports.example/v1beta1
kind: Report
metadata:
  name: r
  namespace: shop
  uid: 77
  resourceVersion: "5"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  deletionTimestamp: "2026-01-01T00:00:00Z"
  ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: b}]
  finalizers: [example.com/hold]
  managedFields: [{manager: engine, operation: Update}]
  labels: {app: web, kcp.io/cluster: a, synchub.dev/owner: copied, synchub.dev/mailbox-access: "true", synchub.dev/credential: kubeconfig, edge.kubestellar.io/projected: "yes"}
  annotations:
    note: x
    kcp.io/cluster: a
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    synchub.dev/ensured-by: x
    synchub.dev/allowed-sync-targets: florin
    edge.kubestellar.io/upsynced: Report/shop/r
    edge.kubestellar.io/downsynced: Report/shop/r
    deployment.kubernetes.io/revision: "7"
spec: {nothing: null, a: 1}
results: [{result: pass, message: null}]
summary: {pass: 1, fail: 0}
status: {phase: Done}
`,
			want: `
apiVersion: reports.example/v1
kind: Report
metadata:
  name: r
  namespace: shop
  labels: {app: web}
  annotations: {note: x, deployment.kubernetes.io/revision: "7"}
spec: {nothing: null, a: 1}
results: [{result: pass, message: null}]
summary: {pass: 1, fail: 0}
`,
		},
		"a ClusterRole that aggregates other roles": {
			target: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: []}, rules: [{verbs: [get]}]}",
			want:   "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: []}}",
		},
		"a namespace": {
			target: "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {kubernetes.io/metadata.name: shop, team: a}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}",
			want:   "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}",
		},
		"a secret": {
			target: "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, type: Opaque, data: {a: YQ==}}",
			want:   "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, type: Opaque, data: {a: YQ==}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			target, want := fixtures.Object(t, test.target), fixtures.Object(t, test.want)
			target.SetUID("target-uid")
			// Copied from its owner, or written by KubeStellar.
			annotations := target.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[ownership.MarkAnnotation] = down.Owner.Seal(mark.Mark)
			target.SetAnnotations(annotations)

			up := upFor(want)
			desired, err := up.Desired(target, targetResource, transform.SyncSpec{Policy: ownership.PolicyOrphan})
			if err != nil {
				t.Fatal(err)
			}
			if got := unmarked(t, desired); !reflect.DeepEqual(got, want.Object) {
				t.Errorf("want %v\ngot  %v", want.Object, got)
			}
			hash, err := down.Hasher.Hash(want.Object)
			if err != nil {
				t.Fatal(err)
			}
			wantMark := ownership.Mark{
				Version: ownership.MarkVersion, Hub: "hub-uid", SyncTarget: "target-uid", Mailbox: "2f5wd0xyz", Direction: ownership.DirectionUp,
				Source: ownership.Source{Group: "target.example", Resource: "things", Namespace: target.GetNamespace(), Name: target.GetName(), UID: "target-uid"},
				Self:   transform.SelfOf(want),
				Policy: ownership.PolicyOrphan, Hash: hash,
			}
			if desired.Mark != wantMark {
				t.Errorf("want %+v\ngot  %+v", wantMark, desired.Mark)
			}
			if got, err := up.Owner.VerifyUp(desired.Object.GetAnnotations(), transform.SelfOf(desired.Object)); err != nil || got != wantMark {
				t.Errorf("the object's mark does not verify: %+v, %v", got, err)
			}
			if _, err := up.Owner.Verify(desired.Object.GetAnnotations(), transform.SelfOf(desired.Object)); !errors.Is(err, ownership.ErrCopied) {
				t.Errorf("on the target the mark would verify: %v", err)
			}
		})
	}
}

func TestUpRefuses(t *testing.T) {
	token := fixtures.Object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, annotations: {kubernetes.io/service-account.name: robot}}, type: kubernetes.io/service-account-token, data: {token: YQ==}}")
	desired, err := upFor(token).Desired(token, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete})
	wantInvalid(t, desired, err, "type", "upsync")

	disguised := fixtures.Object(t, "{apiVersion: target.example/v1, kind: Thing, metadata: {name: s, namespace: shop, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}")
	asSecret := conversion.Conversion{Upstream: conversion.Pattern{Version: "v1", Kind: "Secret"}, Downstream: conversion.Pattern{Group: "target.example", Version: "v1", Kind: "Thing"}}
	desired, err = upFor(token).Desired(disguised, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &asSecret})
	wantInvalid(t, desired, err, "type", "token")
	pull := fixtures.Object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, annotations: {openshift.io/token-secret.name: t}}, type: kubernetes.io/dockercfg}")
	desired, err = upFor(pull).Desired(pull, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete})
	wantInvalid(t, desired, err, "metadata.annotations[openshift.io/token-secret.name]", "pull secret")

	large := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}")
	large.SetAnnotations(map[string]string{"pad": strings.Repeat("x", 256<<10)})
	var tooLarge *transform.TooLargeError
	if desired, err := upFor(large).Desired(large, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete}); !errors.As(err, &tooLarge) || desired != nil {
		t.Errorf("want TooLarge, got %v, %v", desired, err)
	}
}

// The annotation is only about overwriting target objects.
func TestOverwriteAnnotationHasNoEffectUp(t *testing.T) {
	target := fixtures.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, annotations: {edge.kubestellar.io/downsync-overwrite: "false"}}}`)
	desired, err := upFor(target).Desired(target, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete})
	if err != nil || desired.Mark.Policy != ownership.PolicyDelete {
		t.Errorf("got %+v, %v", desired, err)
	}
}
