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
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

var down = transform.Down{
	Owner:    ownership.Owner{Hub: "hub-uid", SyncTarget: "target-uid", Sealer: ownership.NewSealer([]byte("key"))},
	Mailbox:  "2f5wd0xyz",
	Resource: schema.GroupResource{Group: "apps", Resource: "deployments"},
	Hasher:   ownership.NewHasher([]byte("key")),
}

func desiredFor(t *testing.T, source *unstructured.Unstructured) *transform.Desired {
	t.Helper()
	desired, err := down.Desired(source, transform.SyncSpec{Policy: ownership.PolicyDelete})
	if err != nil {
		t.Fatal(err)
	}
	return desired
}

// unmarked returns the desired object without the hub's marks.
func unmarked(t *testing.T, desired *transform.Desired) map[string]any {
	t.Helper()
	result := desired.Object.DeepCopy()
	labels, annotations := result.GetLabels(), result.GetAnnotations()
	if labels[ownership.OwnerLabel] != down.Owner.LabelValue() {
		t.Errorf("the owner label is %q", labels[ownership.OwnerLabel])
	}
	if annotations[ownership.MarkAnnotation] != down.Owner.Seal(desired.Mark) {
		t.Errorf("the mark is %s, but the object carries %s", desired.Mark, annotations[ownership.MarkAnnotation])
	}
	delete(labels, ownership.OwnerLabel)
	delete(annotations, ownership.MarkAnnotation)
	for field, entries := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		unstructured.RemoveNestedField(result.Object, "metadata", field)
		for key, value := range entries {
			if err := unstructured.SetNestedField(result.Object, value, "metadata", field, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	return result.Object
}

func TestDesired(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"all that belongs to the mailbox stays there": {
			source: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: 77
  resourceVersion: "5"
  generation: 3
  generateName: web-
  selfLink: /apis
  creationTimestamp: "2026-01-01T00:00:00Z"
  deletionTimestamp: "2026-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 30
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b}]
  finalizers: [example.com/hold]
  managedFields: [{manager: kubectl, operation: Update}]
  labels:
    app: web
    kcp.io/cluster: a
    claimed.internal.apis.kcp.io/0abc: b
    a.kcp.io/x: c
    synchub.dev/owner: forged
    kubernetes.io/metadata.name: shop
    notkcp.io/x: travels
    kcp.io.example.com/x: travels
    kcp.io: travels
    example.com/kcp.io: travels
    synchub.dev/installed-by: forged
    synchub.dev/credential: kubeconfig
    notsynchub.dev/x: travels
    synchub.dev: travels
    edge.kubestellar.io/projected: "yes"
    edge.kubestellar.io/mine: travels
  annotations:
    kcp.io/cluster: a
    internal.tenancy.kcp.io/x: b
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    kubectl.kubernetes.io/restartedAt: travels
    synchub.dev/mark: forged
    synchub.dev/ensured-by: forged
    synchub.dev/allowed-sync-targets: florin
    later.synchub.dev/x: forged
    example.com/synchub.dev: travels
    edge.kubestellar.io/downsynced: Deployment/shop/web
    edge.kubestellar.io/upsynced: Deployment/shop/web
    edge.kubestellar.io/customizer: shop/c
    edge.kubestellar.io/expand-parameters: "true"
    edge.kubestellar.io/downsync-overwrite: travels
    deployment.kubernetes.io/revision: "7"
    deployment.kubernetes.io/desired-replicas: travels
    empty: ""
spec: {replicas: 0, paused: false}
status: {replicas: 3}
`,
			want: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web, notkcp.io/x: travels, kcp.io.example.com/x: travels, kcp.io: travels, example.com/kcp.io: travels, notsynchub.dev/x: travels, synchub.dev: travels, edge.kubestellar.io/mine: travels}
  annotations: {kubectl.kubernetes.io/restartedAt: travels, example.com/synchub.dev: travels, edge.kubestellar.io/downsync-overwrite: travels, deployment.kubernetes.io/desired-replicas: travels, empty: ""}
spec: {replicas: 0, paused: false}
`,
		},
		"of what a user writes inside, nothing is taken": {
			source: `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: shop}
immutable: true
data: {status: a, metadata: b, uid: c, kcp.io/x: d, synchub.dev/mark: e}
spec: {template: {metadata: {uid: u, finalizers: [f], labels: {kcp.io/x: y}}, status: s}}
`,
			want: `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: shop}
immutable: true
data: {status: a, metadata: b, uid: c, kcp.io/x: d, synchub.dev/mark: e}
spec: {template: {metadata: {uid: u, finalizers: [f], labels: {kcp.io/x: y}}, status: s}}
`,
		},
		"nulls of a Go type are no values": {
			source: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: null, template: {metadata: {creationTimestamp: null}, spec: {volumes: null, containers: [{name: a, env: null, args: [null]}]}}}}",
			want:   "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {metadata: {}, spec: {containers: [{name: a, args: [null]}]}}}}",
		},
		"a ClusterRole that aggregates other roles": {
			source: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: [{verbs: [get]}]}",
			want:   "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}",
		},
		"a ClusterRole with rules of its own": {
			source: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: null, rules: [{verbs: [get]}]}",
			want:   "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}",
		},
		"nulls": {
			source: `
apiVersion: example.com/v1
kind: Any
metadata: {name: a, labels: {gone: null, stays: x}, annotations: {gone: null, stays: x}, creationTimestamp: null}
nothing: null
spec:
  template: {metadata: {creationTimestamp: null, name: x}, spec: {creationTimestamp: null}}
  claims: [{kind: Claim, metadata: {creationTimestamp: null}}]
  values: {creationTimestamp: null, metadata: {creationTimestamp: null}}
  list: [null, 1, {nothing: null, stays: {nothing: null}}, [null, [null, "x"]]]
  zero: 0
  empty: ""
  no: false
  map: {}
  items: []
`,
			want: `
apiVersion: example.com/v1
kind: Any
metadata: {name: a, labels: {stays: x}, annotations: {stays: x}}
nothing: null
spec:
  template: {metadata: {name: x}, spec: {creationTimestamp: null}}
  claims: [{kind: Claim, metadata: {}}]
  values: {creationTimestamp: null, metadata: {creationTimestamp: null}}
  list: [null, 1, {nothing: null, stays: {nothing: null}}, [null, [null, "x"]]]
  zero: 0
  empty: ""
  no: false
  map: {}
  items: []
`,
		},
		"a secret's stringData wins over its data": {
			source: "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, type: Opaque, data: {a: YQ==, b: Yg==}, stringData: {b: new, c: 'ü', d: '', e: null}}",
			want:   "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, type: Opaque, data: {a: YQ==, b: bmV3, c: w7w=, d: ''}}",
		},
		"a secret of nothing but stringData": {
			source: "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: null, stringData: {a: b}}",
			want:   "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: Yg==}}",
		},
		"a secret with empty stringData": {
			source: "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {}}",
			want:   "{apiVersion: v1, kind: Secret, metadata: {name: s}}",
		},
		"another kind's stringData is its own affair": {
			source: "{apiVersion: example.com/v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}",
			want:   "{apiVersion: example.com/v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}",
		},
		"the token of a ServiceAccount is the target's affair": {
			source: `
apiVersion: v1
kind: Secret
metadata:
  name: robot-token
  annotations: {kubernetes.io/service-account.name: robot, kubernetes.io/service-account.uid: 1234, note: x}
type: kubernetes.io/service-account-token
immutable: true
data: {token: dG9rZW4=, ca.crt: Y2E=, namespace: c2hvcA==, extra: eA==}
stringData: {token: x}
`,
			want: "{apiVersion: v1, kind: Secret, metadata: {name: robot-token, annotations: {kubernetes.io/service-account.name: robot, note: x}}, type: kubernetes.io/service-account-token}",
		},
		"the annotation without the type is no token": {
			source: "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kubernetes.io/service-account.name: robot, kubernetes.io/service-account.uid: u}}, type: Opaque, data: {token: YQ==}}",
			want:   "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kubernetes.io/service-account.name: robot, kubernetes.io/service-account.uid: u}}, type: Opaque, data: {token: YQ==}}",
		},
		"another kind's type is its own affair": {
			source: "{apiVersion: example.com/v1, kind: Secret, metadata: {name: s}, type: kubernetes.io/service-account-token, data: {token: YQ==}}",
			want:   "{apiVersion: example.com/v1, kind: Secret, metadata: {name: s}, type: kubernetes.io/service-account-token, data: {token: YQ==}}",
		},
		"a pull secret": {
			source: "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {note: x}}, type: kubernetes.io/dockercfg, data: {.dockercfg: e30=}}",
			want:   "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {note: x}}, type: kubernetes.io/dockercfg, data: {.dockercfg: e30=}}",
		},
		"a volume claim": {
			source: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {volumeName: pv-1, resources: {requests: {storage: 1Gi}}}, status: {phase: Bound}}",
			want:   "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {volumeName: pv-1, resources: {requests: {storage: 1Gi}}}}",
		},
		"a namespace": {
			source: "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {kubernetes.io/metadata.name: shop, team: a}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}",
			want:   "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}",
		},
		"another kind called Namespace": {
			source: "{apiVersion: example.com/v1, kind: Namespace, metadata: {name: shop}, spec: {a: b}}",
			want:   "{apiVersion: example.com/v1, kind: Namespace, metadata: {name: shop}, spec: {a: b}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := unmarked(t, desiredFor(t, fixtures.Object(t, test.source))), fixtures.Object(t, test.want).Object
			if !reflect.DeepEqual(got, want) {
				t.Errorf("want %v\ngot  %v", want, got)
			}
		})
	}
}
