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

package transform

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

const (
	crdGroup = "apiextensions.k8s.io"
	crdKind  = "CustomResourceDefinition"
)

// runsToCompletion are kinds whose objects run once. Finished objects may vanish from a cluster, and are not run again.
var runsToCompletion = map[schema.GroupKind]bool{
	{Group: "batch", Kind: "Job"}: true,
	{Kind: "Pod"}:                 true,
}

// hasIdentity are kinds whose objects differ from other objects with the same content: they have run, contain data, or were
// approved.
var hasIdentity = map[schema.GroupKind]bool{
	{Group: "batch", Kind: "Job"}:   true,
	{Kind: "Pod"}:                   true,
	{Kind: "PersistentVolumeClaim"}: true,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: true,
}

// HasIdentity reports whether an object of the kind that was deleted and created again is another object, even with the same
// content.
func HasIdentity(kind schema.GroupKind) bool { return hasIdentity[kind] }

// HasFinished reports whether an object, with its cluster's status, has run to completion, successfully or not.
func HasFinished(object *unstructured.Unstructured) bool {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(item any) bool {
			condition, _ := item.(map[string]any)
			return condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
		})
	case schema.GroupKind{Kind: "Pod"}:
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
	default:
		return false
	}
}

// registryAnnotations bind a pull secret to a ServiceAccount of the OpenShift cluster that created it, before and since
// version 4.16.
var registryAnnotations = []string{"openshift.io/token-secret.name", "openshift.io/internal-registry-auth-token.service-account"}

// rename gives the content another name. A CustomResourceDefinition has its name in its spec, too.
func rename(content map[string]any, name conversion.Name) error {
	object := &unstructured.Unstructured{Object: content}
	before := object.GetName()
	object.SetGroupVersionKind(name.GVK)
	object.SetName(name.Name)
	object.SetNamespace(name.Namespace)
	if name.Name == before || name.GVK.Group != crdGroup || name.GVK.Kind != crdKind {
		return nil
	}
	plural, group, ok := strings.Cut(name.Name, ".")
	if !ok || plural == "" || group == "" {
		return &InvalidObjectError{
			Field:   "metadata.name",
			Message: "the conversion calls it " + name.Name + ", but a CustomResourceDefinition is called by its plural name, a dot and its group",
		}
	}
	if spec, ok := content["spec"].(map[string]any); ok {
		spec["group"] = group
		if names, ok := spec["names"].(map[string]any); ok {
			names["plural"] = plural
		}
	}
	return nil
}

// adaptForOtherCluster removes fields that are valid only on the object's own cluster.
func adaptForOtherCluster(content map[string]any) error {
	if IsBuiltIn(kindOf(content).Group) {
		dropNulls(content)
	}
	switch kindOf(content) {
	case schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}:
		// The spec of a namespace contains only finalizers, which each side manages itself.
		delete(content, "spec")
	case schema.GroupVersionKind{Version: "v1", Kind: "Secret"}:
		foldStringData(content)
		return adaptSecret(content)
	}
	if IsAggregated(content) {
		delete(content, aggregatedRules)
	}
	return nil
}

// builtInGroups are the API groups in client-go's scheme, and the group of the twins of their kinds in mailboxes. API servers have Go
// types for their kinds.
var builtInGroups = map[string]bool{
	"": true, "apps": true, "autoscaling": true, "batch": true, "extensions": true, "policy": true,
	"admissionregistration.k8s.io": true, "authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true,
	"internal.apiserver.k8s.io": true, "networking.k8s.io": true, "node.k8s.io": true, "rbac.authorization.k8s.io": true,
	"resource.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true, "storagemigration.k8s.io": true,
	policy.TwinGroup: true,
}

// IsBuiltIn reports whether an API group is Kubernetes' own. For its kinds null, empty and absent are mostly the same.
func IsBuiltIn(group string) bool { return builtInGroups[group] }

// dropNulls removes fields that are null, which have no value for a Go type. If the hub applied them, it would own the fields,
// and with `replicas: null` it would undo an autoscaler's changes. Items of lists stay.
func dropNulls(value any) {
	switch typed := value.(type) {
	case map[string]any:
		for field, inner := range typed {
			if inner == nil {
				delete(typed, field)
				continue
			}
			dropNulls(inner)
		}
	case []any:
		for _, item := range typed {
			dropNulls(item)
		}
	}
}

// aggregatedRules is the field of a ClusterRole that a controller of each side sets if the role aggregates other ClusterRoles.
const aggregatedRules = "rules"

// IsAggregated reports whether an object is a ClusterRole that aggregates other ClusterRoles, under its own group or the group of
// its twin in a mailbox. A controller of its side sets the rules.
func IsAggregated(content map[string]any) bool {
	rule, ok := content["aggregationRule"].(map[string]any)
	return ok && rule != nil && kindOf(content).Kind == "ClusterRole"
}

func kindOf(content map[string]any) schema.GroupVersionKind {
	return (&unstructured.Unstructured{Object: content}).GroupVersionKind()
}

func isTokenSecret(content map[string]any) bool {
	return kindOf(content) == schema.GroupVersionKind{Version: "v1", Kind: "Secret"} &&
		content["type"] == string(corev1.SecretTypeServiceAccountToken)
}

// TokenAccountOf returns the ServiceAccount of a token Secret, as NAMESPACE/NAME; empty for another object.
func TokenAccountOf(object *unstructured.Unstructured) string {
	if !isTokenSecret(object.Object) {
		return ""
	}
	return object.GetNamespace() + "/" + object.GetAnnotations()[corev1.ServiceAccountNameKey]
}

// adaptSecret removes the fields that only the target's own controllers can set.
func adaptSecret(content map[string]any) error {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	switch content["type"] {
	case string(corev1.SecretTypeServiceAccountToken):
		if name, _ := annotations[corev1.ServiceAccountNameKey].(string); name == "" {
			return annotationError(corev1.ServiceAccountNameKey, "a token Secret must name its ServiceAccount, else the target gives it no token: set the annotation")
		}
		delete(annotations, corev1.ServiceAccountUIDKey)
		delete(content, "data")
		// The target could not add its token.
		delete(content, "immutable")
	case string(corev1.SecretTypeDockercfg), string(corev1.SecretTypeDockerConfigJson):
		for _, key := range registryAnnotations {
			if _, ok := annotations[key]; ok {
				return annotationError(key, "the Secret is bound to a ServiceAccount of the cluster that made it and of no use elsewhere: create a pull secret of its own")
			}
		}
	}
	return nil
}

func annotationError(key, message string) error {
	return &InvalidObjectError{Field: "metadata.annotations[" + key + "]", Message: message}
}

// foldStringData moves stringData into data, as the API server does on a write. Otherwise the hub would apply the write-only field,
// and then miss it.
func foldStringData(content map[string]any) {
	stringData, ok := content["stringData"].(map[string]any)
	delete(content, "stringData")
	if !ok || len(stringData) == 0 {
		return
	}
	data := map[string]any{}
	if existing, ok := content["data"].(map[string]any); ok {
		maps.Copy(data, existing)
	}
	for key, value := range stringData {
		if text, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	content["data"] = data
}
