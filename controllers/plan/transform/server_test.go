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
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic" //nolint:depguard // the test asks a real API server

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const (
	hubManager = "synchub-test"
	namespace  = "shop"
)

func TestMain(m *testing.M) { suite.Main(m) }

// TestOnARealServer tests the parts that depend on the processing of a desired object by an API server and its controllers.
func TestOnARealServer(t *testing.T) {
	target := suite.StartTarget(t, "target", servers.TargetOptions{Controllers: true})
	suite.Apply(t, target.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
	client := suite.Dynamic(t, target.Config)
	t.Run("a field removed after adoption disappears", func(t *testing.T) {
		for kind, adoption := range adoptions {
			t.Run(kind, func(t *testing.T) { adoption.try(t, client) })
		}
	})
	t.Run("a token is usable", func(t *testing.T) { tryToken(t, client) })
}

// apply applies the desired object for a source.
func apply(t *testing.T, client dynamic.ResourceInterface, source *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	applied, err := client.Apply(t.Context(), source.GetName(), desiredFor(t, source).Object, metav1.ApplyOptions{FieldManager: hubManager, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// adoption is the history of an object that another client created completely on the target before the hub took it over.
type adoption struct {
	resource schema.GroupVersionResource
	object   string
	// next is the later content of the mailbox object. gone are the paths (see holds) that the target must no longer have then.
	next string
	gone []string
}

var adoptions = map[string]adoption{
	"Deployment": {
		resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, gone: x}, annotations: {gone: x}}
spec:
  replicas: 2
  revisionHistoryLimit: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {gone: x}}
    spec:
      nodeSelector: {disk: ssd}
      volumes:
      - {name: scratch, emptyDir: {sizeLimit: 1000Mi}}
      - {name: config, configMap: {name: c}}
      containers:
      - name: web
        image: nginx
        env: [{name: KEPT, value: x}, {name: GONE, value: x}]
        ports: [{containerPort: 80}, {containerPort: 9090, name: metrics}]
        resources: {requests: {cpu: 1000m}, limits: {memory: 1024Mi}}
        readinessProbe: {httpGet: {path: /ready, port: 80}}
      - {name: sidecar, image: envoy}
`,
		next: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes:
      - {name: config, configMap: {name: c}}
      containers:
      - name: web
        image: nginx
        env: [{name: KEPT, value: x}]
        ports: [{containerPort: 80}]
`,
		gone: []string{
			"metadata labels gone", "metadata annotations gone", "spec template metadata annotations gone",
			"spec template spec nodeSelector disk", "spec template spec volumes scratch", "spec template spec containers sidecar",
			"spec template spec containers web env GONE", "spec template spec containers web ports metrics",
			"spec template spec containers web readinessProbe", "spec template spec containers web resources requests",
			"spec template spec containers web resources limits",
		},
	},
	"Service": {
		resource: schema.GroupVersionResource{Version: "v1", Resource: "services"},
		object:   "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web, gone: x}, ports: [{name: http, port: 80}, {name: gone, port: 90, protocol: UDP}]}}",
		next:     "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{name: http, port: 80}]}}",
		gone:     []string{"spec selector gone", "spec ports gone"},
	},
	"ConfigMap": {
		resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		object:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {kept: x, gone: x}, binaryData: {raw: AAE=}}",
		next:     "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {kept: x}}",
		gone:     []string{"data gone", "binaryData"},
	},
}

func (a adoption) try(t *testing.T, dynamicClient dynamic.Interface) {
	client := dynamicClient.Resource(a.resource).Namespace(namespace)
	source := fixtures.Object(t, a.object)
	for _, path := range a.gone {
		if !holds(source.Object, path) {
			t.Fatalf("%s is not there in the first place", path)
		}
	}
	theirs := source.DeepCopy()
	if err := unstructured.SetNestedField(theirs.Object, "x", "metadata", "labels", "theirs"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}

	adopted := apply(t, client, source)
	for {
		entries, changed := ownership.TakeOwnership(adopted.GetManagedFields(), hubManager)
		if !changed {
			break
		}
		var err error
		if adopted, err = replaceManagedFields(t, client, adopted, entries); err != nil {
			t.Fatal(err)
		}
	}
	lost, err := ownership.UnownedPaths(desiredFor(t, source).Object.Object, entryOf(t, adopted))
	if err != nil || len(lost) > 0 {
		t.Errorf("the hub lost %v, %v", lost, err)
	}

	after := apply(t, client, fixtures.Object(t, a.next))
	for _, path := range a.gone {
		if holds(after.Object, path) {
			t.Errorf("%s is still there: %v", path, after.Object["spec"])
		}
	}
	if after.GetLabels()["theirs"] != "x" {
		t.Error("a label that is not the hub's went, too")
	}
	// The object with the API server's defaults is in sync.
	drifted, err := ownership.UnownedPaths(desiredFor(t, fixtures.Object(t, a.next)).Object.Object, entryOf(t, after))
	if err != nil || len(drifted) > 0 {
		t.Errorf("the hub misses %v, %v", drifted, err)
	}
}

// replaceManagedFields replaces the managedFields, and reads the object again if another client has written it in between.
func replaceManagedFields(t *testing.T, client dynamic.ResourceInterface, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) (*unstructured.Unstructured, error) {
	t.Helper()
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
	})
	if err != nil {
		return nil, err
	}
	patched, err := client.Patch(t.Context(), live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: hubManager})
	if err == nil {
		return patched, nil
	}
	current, readErr := client.Get(t.Context(), live.GetName(), metav1.GetOptions{})
	if readErr == nil && current.GetResourceVersion() != live.GetResourceVersion() {
		return current, nil
	}
	return nil, errors.Join(err, readErr)
}

func entryOf(t *testing.T, live *unstructured.Unstructured) []byte {
	t.Helper()
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == hubManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return entry.FieldsV1.GetRawBytes()
		}
	}
	t.Fatal("the hub's entry is gone")
	return nil
}

// The target's own token controller fills the Secret for the ServiceAccount of its cluster, and the object is in sync.
func tryToken(t *testing.T, dynamicClient dynamic.Interface) {
	g := NewWithT(t)
	accounts := dynamicClient.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(namespace)
	secrets := dynamicClient.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	account := apply(t, accounts, fixtures.Object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: shop}}"))
	source := fixtures.Object(t, `
apiVersion: v1
kind: Secret
metadata:
  name: robot-token
  namespace: shop
  annotations: {kubernetes.io/service-account.name: robot, kubernetes.io/service-account.uid: of-the-mailbox}
type: kubernetes.io/service-account-token
immutable: true
data: {token: b2YgdGhlIG1haWxib3g=, ca.crt: b2YgdGhlIG1haWxib3g=, namespace: b2YgdGhlIG1haWxib3g=}
`)
	apply(t, secrets, source)
	var filled *unstructured.Unstructured
	g.Eventually(func() (map[string]any, error) {
		var err error
		filled, err = secrets.Get(t.Context(), source.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		data, _, err := unstructured.NestedMap(filled.Object, "data")
		return data, err
	}).WithPolling(100 * time.Millisecond).Should(HaveKey("token"))
	if uid := filled.GetAnnotations()[corev1.ServiceAccountUIDKey]; uid != string(account.GetUID()) {
		t.Errorf("the token is for %s, not for %s", uid, account.GetUID())
	}
	for key, value := range filled.Object["data"].(map[string]any) {
		if value == "b2YgdGhlIG1haWxib3g=" {
			t.Errorf("%s came from the mailbox", key)
		}
	}
	drifted, err := ownership.UnownedPaths(desiredFor(t, source).Object.Object, entryOf(t, filled))
	if err != nil || len(drifted) > 0 {
		t.Errorf("what the target filled in is taken for drift: %v, %v", drifted, err)
	}
	if again := apply(t, secrets, source); again.GetResourceVersion() != filled.GetResourceVersion() {
		t.Errorf("another apply changed %v to %v", filled, again)
	}
}

// holds reports whether there is a value at the path, in which items of lists have their names.
func holds(value any, path string) bool {
	for step := range strings.FieldsSeq(path) {
		switch typed := value.(type) {
		case map[string]any:
			value = typed[step]
		case []any:
			index := slices.IndexFunc(typed, func(item any) bool { return item.(map[string]any)["name"] == step })
			if index < 0 {
				return false
			}
			value = typed[index]
		default:
			return false
		}
	}
	return value != nil
}
