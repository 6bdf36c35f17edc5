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

package scenario

import (
	"context"
	"fmt"
	"strings"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

var (
	configMaps     = corev1.SchemeGroupVersion.WithResource("configmaps")
	secrets        = corev1.SchemeGroupVersion.WithResource("secrets")
	namespaces     = corev1.SchemeGroupVersion.WithResource("namespaces")
	deployments    = appsv1.SchemeGroupVersion.WithResource("deployments")
	syncerConfigs  = edgev2alpha1.GroupVersion.WithResource("syncerconfigs")
	edgePlacements = edgev2alpha1.GroupVersion.WithResource("edgeplacements")
	syncTargets    = edgev2alpha1.GroupVersion.WithResource("synctargets")
	endpointSlices = apisv1alpha1.SchemeGroupVersion.WithResource("apiexportendpointslices")
)

// payload is the data of a ConfigMap of 2 KB.
var payload = strings.Repeat("0123456789abcdef", 112)

// configMap returns a ConfigMap of 2 KB.
func configMap(namespace, name string) *unstructured.Unstructured {
	return parse(fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s}
data: {entry: "0", payload: %s}
`, name, namespace, payload))
}

// deployment returns a typical Deployment.
func deployment(namespace, name string) *unstructured.Unstructured {
	return parse(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[2]s
  namespace: %[1]s
  labels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: %[2]s, app.kubernetes.io/part-of: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app.kubernetes.io/instance: %[2]s}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata:
      labels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: %[2]s}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9102"}
    spec:
      serviceAccountName: %[2]s
      securityContext: {runAsNonRoot: true, runAsUser: 10001, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: registry.example/shop/web:1.8.2
        ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9102}]
        env:
        - {name: DATABASE, valueFrom: {secretKeyRef: {name: %[2]s, key: database}}}
        - {name: LOG_LEVEL, value: info}
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
        livenessProbe: {httpGet: {path: /live, port: http}, initialDelaySeconds: 10}
        volumeMounts: [{name: settings, mountPath: /etc/web, readOnly: true}]
      volumes: [{name: settings, configMap: {name: %[2]s}}]
`, namespace, name))
}

// config returns a SyncerConfig that selects all objects of the resources in a namespace.
func config(namespace string, suspended bool, resources ...schema.GroupVersionResource) *unstructured.Unstructured {
	var selected strings.Builder
	for _, resource := range resources {
		fmt.Fprintf(&selected, "    - {group: %q, resource: %s, apiVersion: %s}\n", resource.Group, resource.Resource, resource.Version)
	}
	return parse(fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %[1]s}
spec:
  suspend: %[2]t
  namespaceScope:
    namespaces: [%[1]s]
    resources:
%[3]s`, namespace, suspended, selected.String()))
}

// parse decodes a manifest of this program.
func parse(manifest string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		panic(err)
	}
	return object
}

// prepare creates namespaces in the mailbox and on the target.
func (at *testTarget) prepare(ctx context.Context, names ...string) error {
	for _, name := range names {
		namespace := parse("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}")
		_, mailbox := at.mailbox.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{})
		_, target := at.target.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{})
		for _, err := range []error{mailbox, target} {
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	return nil
}

// fill creates objects in the mailbox.
func (at *testTarget) fill(ctx context.Context, resource schema.GroupVersionResource, objects ...*unstructured.Unstructured) error {
	return create(ctx, at.mailbox, resource, objects...)
}

// create creates objects, several at a time.
func create(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, objects ...*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fillers)
	for _, object := range objects {
		group.Go(func() error {
			_, err := client.Resource(resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// configure creates a SyncerConfig in the mailbox.
func (at *testTarget) configure(ctx context.Context, config *unstructured.Unstructured) error {
	_, err := at.mailbox.Resource(syncerConfigs).Create(ctx, config, metav1.CreateOptions{})
	return err
}

// reconfigure patches a SyncerConfig.
func (at *testTarget) reconfigure(ctx context.Context, config *unstructured.Unstructured) error {
	patch, err := config.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = at.mailbox.Resource(syncerConfigs).Patch(ctx, config.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// resume sets spec.suspend of a SyncerConfig to false.
func (at *testTarget) resume(ctx context.Context, name string) error {
	_, err := at.mailbox.Resource(syncerConfigs).Patch(ctx, name, types.MergePatchType, []byte(`{"spec": {"suspend": false}}`), metav1.PatchOptions{})
	return err
}

// configMapsOf returns ConfigMaps of one namespace.
func configMapsOf(namespace string, count int) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, count)
	for i := range objects {
		objects[i] = configMap(namespace, fmt.Sprintf("object-%d", i))
	}
	return objects
}

// newObject returns an object of a resource.
func newObject(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	if resource == deployments {
		return deployment(namespace, name)
	}
	return configMap(namespace, name)
}

// isHubNamespace reports whether a namespace is selected for the hub.
func isHubNamespace(namespace string) bool { return strings.HasPrefix(namespace, "hub-") }

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
