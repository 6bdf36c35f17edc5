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

package chart

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/schemas/builtin"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
)

// schemaGroup replaces the group apps, which a Kubernetes cluster already serves.
const schemaGroup = "apps.synchub.example"

// deploymentExample sets every field of a Deployment, and some fields of its Pods.
const deploymentExample = `
apiVersion: apps.synchub.example/v1
kind: Deployment
metadata:
  name: example
  namespace: default
spec:
  replicas: 2
  selector:
    matchLabels: {app: example}
    matchExpressions:
    - {key: tier, operator: In, values: [web]}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}
  minReadySeconds: 3
  revisionHistoryLimit: 4
  paused: false
  progressDeadlineSeconds: 60
  template:
    metadata:
      labels: {app: example, tier: web}
      annotations: {example.org/note: hello}
    spec:
      serviceAccountName: example
      initContainers:
      - {name: first, image: example.org/first:1}
      containers:
      - name: web
        image: example.org/web:1
        ports:
        - {containerPort: 8080, protocol: TCP}
        - {containerPort: 8080, protocol: UDP}
        resources: {requests: {cpu: 100m, memory: "64Mi"}}
        livenessProbe: {httpGet: {path: /healthz, port: 8080}}
      volumes:
      - {name: data, emptyDir: {}}
`

// TestSchemaOfDeployments checks the schema for mailboxes in a real API server, under another group.
func TestSchemaOfDeployments(t *testing.T) {
	c := sharedCluster(t)
	definition := deploymentDefinition(t)
	manifest, err := yaml.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	ctx := contextFor(t)
	if err := framework.Apply(ctx, c.Config, string(manifest)+"\n---\n"+deploymentExample); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: schemaGroup, Version: "v1", Resource: "deployments"}
	deployments := c.dynamic.Resource(resource).Namespace(metav1.NamespaceDefault)

	t.Run("keeps what was written and adds nothing", func(t *testing.T) {
		stored, err := deployments.Get(ctx, "example", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := fixtures.Object(t, deploymentExample); !reflect.DeepEqual(stored.Object["spec"], want.Object["spec"]) {
			t.Errorf("stored %v, want %v", stored.Object["spec"], want.Object["spec"])
		}
	})
	t.Run("takes the status of a real Deployment", func(t *testing.T) { checkStatus(t, deployments) })
	for _, test := range []struct {
		name, complaint string
		change          func(*unstructured.Unstructured)
	}{
		{"no selector", "spec.selector", remove("spec", "selector")},
		{"no template", "spec.template", remove("spec", "template")},
		{"no containers", "spec.template.spec.containers", remove("spec", "template", "spec", "containers")},
		{"replicas in words", "spec.replicas", set("two", "spec", "replicas")},
		{"a misspelt field of Pods", "spec.template.spec.restartsPolicy", set("Always", "spec", "template", "spec", "restartsPolicy")},
		{"unknown strategy", "spec.strategy.type", set("Sideways", "spec", "strategy", "type")},
		{"misspelt field", "spec.replica", set(int64(1), "spec", "replica")},
		{"labels of another type", "spec.template.metadata.labels.app", set(int64(1), "spec", "template", "metadata", "labels", "app")},
	} {
		t.Run("refuses "+test.name, func(t *testing.T) {
			object := fixtures.Object(t, deploymentExample)
			object.SetName("refused")
			test.change(object)
			_, err := deployments.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Fatalf("want a refusal, got %v", err)
			}
			if !strings.Contains(err.Error(), test.complaint) {
				t.Errorf("the complaint should name %s: %v", test.complaint, err)
			}
		})
	}
}

// checkStatus sets every field of a Deployment's status with the types of Kubernetes, and reads all of them back.
func checkStatus(t *testing.T, deployments dynamic.ResourceInterface) {
	ctx := contextFor(t)
	now := metav1.Now().Rfc3339Copy()
	count := int32(3)
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UnavailableReplicas: 1,
		TerminatingReplicas: &count, CollisionCount: &count,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastUpdateTime: now, LastTransitionTime: now,
			Reason: "MinimumReplicasAvailable", Message: "all is well",
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	object, err := deployments.Get(ctx, "example", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.Object["status"] = status
	updated, err := deployments.UpdateStatus(ctx, object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(updated.Object["status"], any(status)) {
		t.Errorf("stored %v, want %v", updated.Object["status"], status)
	}
	scale, err := deployments.Get(ctx, "example", metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(scale.Object, "status", "replicas"); replicas != int64(count) {
		t.Errorf("the scale has %d replicas, want %d", replicas, count)
	}
}

func deploymentDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition, err := builtin.Find(v1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments"})
	if err != nil {
		t.Fatal(err)
	}
	definition.Name = "deployments." + schemaGroup
	definition.Spec.Group = schemaGroup
	definition.Spec.Names.ShortNames = nil
	definition.Spec.Names.Categories = nil
	return definition
}

func remove(path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) { unstructured.RemoveNestedField(object.Object, path...) }
}

func set(value any, path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			panic(err)
		}
	}
}
