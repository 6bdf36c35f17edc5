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

package tenancy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// References are the paths of an object's fields that name namespaces: a name, a list of names, or a label selector for
// namespaces.
type References []fieldpath.Path

// CompileReferences returns the references of the objects of a resource: the known ones of Kubernetes' kinds, and further ones.
// The error contains the field at fault, as namespaceReferences[0].
func CompileReferences(resource schema.GroupResource, further []synchubv1alpha1.FieldPath) (references References, err error) {
	for _, text := range kubernetesReferences[resource] {
		path, err := fieldpath.Parse(text)
		if err != nil {
			return nil, err
		}
		references = append(references, path)
	}
	var errs []error
	for i, text := range further {
		path, err := fieldpath.Parse(string(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("namespaceReferences[%d]: %w", i, err))
			continue
		}
		references = append(references, path)
	}
	return references, errors.Join(errs...)
}

// kubernetesReferences are the references of the kinds of Kubernetes.
var kubernetesReferences = func() map[schema.GroupResource][]string {
	subjects := []string{"subjects[*].namespace"}
	webhooks := []string{"webhooks[*].clientConfig.service.namespace", "webhooks[*].namespaceSelector"}
	policies := []string{
		"spec.matchConstraints.namespaceSelector", "spec.matchResources.namespaceSelector", "spec.paramRef.namespace",
	}
	known := map[schema.GroupResource][]string{
		{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:        subjects,
		{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}: subjects,
		{Group: "networking.k8s.io", Resource: "networkpolicies"}: {
			"spec.ingress[*].from[*].namespaceSelector", "spec.egress[*].to[*].namespaceSelector",
		},
		{Group: "networking.k8s.io", Resource: "ingressclasses"}:                               {"spec.parameters.namespace"},
		{Resource: "persistentvolumeclaims"}:                                                   {"spec.dataSourceRef.namespace"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   webhooks,
		{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     webhooks,
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       policies,
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: policies,
		{Group: "apiregistration.k8s.io", Resource: "apiservices"}:                             {"spec.service.namespace"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:                 {"spec.conversion.webhook.clientConfig.service.namespace"},
		{Resource: "pods"}:                        podReferences("spec"),
		{Group: "apps", Resource: "deployments"}:  podReferences("spec.template.spec"),
		{Group: "apps", Resource: "statefulsets"}: podReferences("spec.template.spec"),
		{Group: "apps", Resource: "daemonsets"}:   podReferences("spec.template.spec"),
		{Group: "apps", Resource: "replicasets"}:  podReferences("spec.template.spec"),
		{Group: "batch", Resource: "jobs"}:        podReferences("spec.template.spec"),
		{Group: "batch", Resource: "cronjobs"}:    podReferences("spec.jobTemplate.spec.template.spec"),
		{Resource: "replicationcontrollers"}:      podReferences("spec.template.spec"),
	}
	return known
}()

// podReferences returns the references of the spec of a Pod at a path.
func podReferences(spec string) (paths []string) {
	for _, affinity := range []string{"podAffinity", "podAntiAffinity"} {
		at := spec + ".affinity." + affinity
		for _, term := range []string{
			at + ".requiredDuringSchedulingIgnoredDuringExecution[*]", at + ".preferredDuringSchedulingIgnoredDuringExecution[*].podAffinityTerm",
		} {
			paths = append(paths, term+".namespaces", term+".namespaceSelector")
		}
	}
	return paths
}

// systemPrefix is the prefix of the namespaces of Kubernetes, which no workspace can have.
const systemPrefix = "kube-"

// Rewrite returns an object of a workload workspace with the names of namespaces on the cluster in its references, or the object
// itself if nothing changes. The names of Kubernetes' own namespaces stay. The object keeps its own namespace.
func (n Naming) Rewrite(workspace logicalcluster.Name, object *unstructured.Unstructured, references References) (*unstructured.Unstructured, error) {
	if n.IsShared() || !references.areIn(object) {
		return object, nil
	}
	rename := func(name string) string {
		if strings.HasPrefix(name, systemPrefix) {
			return name
		}
		return n.Namespace(workspace, name)
	}
	rewritten := object.DeepCopy()
	for _, path := range references {
		err := path.Change(rewritten.Object, false, func(value any, _ bool) (any, error) { return renamed(value, rename), nil })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return rewritten, nil
}

// areIn reports whether an object has a value at one of the paths.
func (r References) areIn(object *unstructured.Unstructured) bool {
	for _, path := range r {
		if len(path.Values(object.Object)) > 0 {
			return true
		}
	}
	return false
}

// renamed returns the value of a reference with other names of namespaces; it changes lists and maps in place. A value of another
// type stays as it is.
func renamed(value any, rename func(string) string) any {
	switch typed := value.(type) {
	case string:
		return rename(typed)
	case []any:
		for i, item := range typed {
			if name, ok := item.(string); ok {
				typed[i] = rename(name)
			}
		}
		return typed
	case map[string]any:
		renameInSelector(typed, rename)
		return typed
	default:
		return value
	}
}

// renameInSelector changes the values of the label that has the name of the namespace, in a label selector for namespaces.
func renameInSelector(selector map[string]any, rename func(string) string) {
	if labels, ok := selector["matchLabels"].(map[string]any); ok {
		if name, ok := labels[corev1.LabelMetadataName].(string); ok {
			labels[corev1.LabelMetadataName] = rename(name)
		}
	}
	expressions, _ := selector["matchExpressions"].([]any)
	for _, item := range expressions {
		if expression, ok := item.(map[string]any); ok && expression["key"] == corev1.LabelMetadataName {
			expression["values"] = renamed(expression["values"], rename)
		}
	}
}
