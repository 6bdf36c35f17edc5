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

package ordinary

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// resources are the resources whose objects are compared, without those that controllers make.
var resources = []schema.GroupVersionResource{
	corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithResource("secrets"), corev1.SchemeGroupVersion.WithResource("services"),
	corev1.SchemeGroupVersion.WithResource("serviceaccounts"), corev1.SchemeGroupVersion.WithResource("pods"),
	appsv1.SchemeGroupVersion.WithResource("deployments"), appsv1.SchemeGroupVersion.WithResource("statefulsets"), appsv1.SchemeGroupVersion.WithResource("daemonsets"),
	batchv1.SchemeGroupVersion.WithResource("jobs"), batchv1.SchemeGroupVersion.WithResource("cronjobs"),
	autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	networkingv1.SchemeGroupVersion.WithResource("ingresses"), networkingv1.SchemeGroupVersion.WithResource("networkpolicies"),
	corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	rbacv1.SchemeGroupVersion.WithResource("roles"), rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
}

var replicaSets = appsv1.SchemeGroupVersion.WithResource("replicasets")

// state are the objects of a Namespace as people care about them: JSON by kind and name, without what differs from one Namespace to
// another, and without what servers and the hub add.
type state map[string]string

// stateOf reads a state. withChildren adds the ReplicaSets and Pods that controllers have made, by their content.
func stateOf(ctx context.Context, client dynamic.Interface, namespace string, withChildren bool) (state, error) {
	found := state{}
	for _, resource := range append(slices.Clone(resources), replicaSets) {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // a workspace does not serve it
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", resource.Resource, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			isChild := resource == replicaSets || metav1.GetControllerOf(object) != nil
			if object.GetDeletionTimestamp() != nil || isMadeByServers(object) || isChild && !withChildren {
				continue
			}
			name := object.GetName()
			if isChild || resource.Resource == "pods" && object.GetGenerateName() != "" {
				name = fmt.Sprintf("%s%d", object.GetGenerateName(), len(found))
			}
			content, err := json.MarshalIndent(normalize(object, namespace), "", " ")
			if err != nil {
				return nil, err
			}
			found[object.GetKind()+" "+strings.ReplaceAll(name, namespace, "NAMESPACE")] = string(content)
		}
	}
	return found, nil
}

func isMadeByServers(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "ServiceAccount":
		return object.GetName() == "default"
	case "ConfigMap":
		return object.GetName() == "kube-root-ca.crt"
	case "Secret":
		return strings.HasPrefix(object.GetName(), "sh.helm.release.")
	default:
		return false
	}
}

// ignored are fields that each server chooses by itself.
var ignored = []string{"clusterIP", "clusterIPs", "nodePort", "nodeName", "controller-uid", "batch.kubernetes.io/controller-uid", "pod-template-hash"}

// ignoredKeys starts the names of labels and annotations that the hub, kubectl and controllers keep for themselves. An API server copies the name of
// a Job from its template to its labels only if it has no labels.
var ignoredKeys = regexp.MustCompile(`^((batch\.kubernetes\.io/)?job-name$|synchub\.dev/|(edge\.)?kubestellar\.io/|.*\.synchub\.dev/|kubectl\.kubernetes\.io/last-applied|deployment\.kubernetes\.io/|deprecated\.daemonset|meta\.helm\.sh/release-namespace)`)

// generated matches what is random.
var generated = regexp.MustCompile(`kube-api-access-\w+|applyset-[\w-]+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`)

func normalize(object *unstructured.Unstructured, namespace string) map[string]any {
	content := maps.Clone(object.Object)
	for _, field := range []string{"metadata", "status", "apiVersion"} {
		delete(content, field)
	}
	for field, values := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		kept := map[string]any{}
		for key, text := range values {
			if !ignoredKeys.MatchString(key) {
				kept[key] = text
			}
		}
		content[field] = kept
	}
	return clean(content, namespace).(map[string]any)
}

// isNoPartition reports whether a field is the strategy of a StatefulSet without partitions. A cluster adds it only where the object has no
// strategy at all, and a workspace adds the type.
func isNoPartition(key string, value any) bool {
	strategy, ok := value.(map[string]any)
	return ok && key == "rollingUpdate" && len(strategy) == 1 && fmt.Sprint(strategy["partition"]) == "0"
}

func clean(value any, namespace string) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, one := range value {
			if !slices.Contains(ignored, key) && !isNoPartition(key, one) {
				kept[key] = clean(one, namespace)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, one := range value {
			kept[i] = clean(one, namespace)
		}
		return kept
	case string:
		return generated.ReplaceAllString(strings.ReplaceAll(value, namespace, "NAMESPACE"), "GENERATED")
	default:
		return value
	}
}
