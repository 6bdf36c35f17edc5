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

package shipped

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind contains the chart's additions to an API of the cluster.
type kind struct {
	schema.GroupVersionResource
	// required lists the fields without which every cluster refuses an object. The mailbox then refuses the object
	// too. Clusters declare more fields as required than they enforce, so the declaration is not used.
	required []string
	// defaults are defaults of the cluster, for the few fields that clients read in responses: without
	// updateStrategy, `kubectl rollout status` fails. The hub owns a field with a default in mailboxes on the target.
	// Therefore fields that other clients set there have none, such as replicas, which an autoscaler sets.
	defaults []defaultValue
	// columns are printed by `kubectl get` if the server has no printer of its own. Clusters do not publish the
	// columns of built-in kinds and compute some of them, so these columns only come close. kcp itself prints these
	// kinds as clusters do.
	columns []apiextensionsv1.CustomResourceColumnDefinition
	// warning is printed by kubectl with each response about the kind. An API server sends such a text only for a version
	// that is marked as deprecated.
	warning string
}

// podsWarning explains why `kubectl logs`, exec and port-forward find no Pod, or one without logs.
const podsWarning = "the Pods of workloads are on the clusters, and this workspace can only show them: run kubectl logs, exec or port-forward with a kubeconfig of the cluster"

// defaultValue is the default of a field.
type defaultValue struct{ field, json string }

// rollingUpdate is the default of kinds with an update strategy. The target defaults the rest of the strategy.
var rollingUpdate = []defaultValue{
	{"spec.updateStrategy", `{"type":"RollingUpdate"}`},
	{"spec.updateStrategy.type", `"RollingUpdate"`},
}

var kinds = []kind{
	{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "services"},
		defaults:             []defaultValue{{"spec.type", `"ClusterIP"`}},
		columns: columns(
			"Type string .spec.type",
			"Cluster-IP string .spec.clusterIP",
			"Ports string .spec.ports[*].port",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		required:             []string{"spec.containers"},
		warning:              podsWarning,
		columns: columns(
			"Status string .status.phase",
			"Node string .spec.nodeName",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
		columns: columns(
			"Class string .spec.ingressClassName",
			"Hosts string .spec.rules[*].host",
			"Address string .status.loadBalancer.ingress[*].ip",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		required:             []string{"spec.selector", "spec.template.spec.containers"},
		columns: columns(
			"Ready integer .status.readyReplicas",
			"Up-to-date integer .status.updatedReplicas",
			"Available integer .status.availableReplicas",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"},
		required:             []string{"spec.selector", "spec.template"},
		defaults:             rollingUpdate,
		columns: columns(
			"Replicas integer .spec.replicas",
			"Ready integer .status.readyReplicas",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"},
		required:             []string{"spec.selector", "spec.template.spec.containers"},
		// `helm install --wait` reads maxUnavailable.
		defaults: []defaultValue{
			{"spec.updateStrategy", `{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1},"type":"RollingUpdate"}`},
			{"spec.updateStrategy.type", `"RollingUpdate"`},
		},
		columns: columns(
			"Desired integer .status.desiredNumberScheduled",
			"Ready integer .status.numberReady",
			"Up-to-date integer .status.updatedNumberScheduled",
			"Available integer .status.numberAvailable",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
		required:             []string{"spec.template.spec.containers"},
		columns: columns(
			"Completions integer .spec.completions",
			"Active integer .status.active",
			"Succeeded integer .status.succeeded",
			"Failed integer .status.failed",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"},
		required:             []string{"spec.schedule", "spec.jobTemplate.spec.template.spec.containers"},
		columns: columns(
			"Schedule string .spec.schedule",
			"Suspend boolean .spec.suspend",
			"Last-schedule date .status.lastScheduleTime",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		required:             []string{"spec.scaleTargetRef.name", "spec.maxReplicas"},
		columns: columns(
			"Reference string .spec.scaleTargetRef.name",
			"Minpods integer .spec.minReplicas",
			"Maxpods integer .spec.maxReplicas",
			"Replicas integer .status.currentReplicas",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
		columns: columns(
			"Min-available string .spec.minAvailable",
			"Max-unavailable string .spec.maxUnavailable",
			"Allowed-disruptions integer .status.disruptionsAllowed",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		columns:              columns("Policy-types string .spec.policyTypes[*]"),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"},
		columns:              columns("Controller string .spec.controller"),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"},
		required:             []string{"spec.accessModes", "spec.resources.requests"},
		columns: columns(
			"Status string .status.phase",
			"Capacity string .status.capacity.storage",
			"Storageclass string .spec.storageClassName",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
		columns: columns(
			"Value integer .value",
			"Global-default boolean .globalDefault",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
		required:             []string{"provisioner"},
		columns: columns(
			"Provisioner string .provisioner",
			"Reclaimpolicy string .reclaimPolicy",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"},
		required:             []string{"spec.selector"},
		columns: columns(
			"Desired integer .spec.replicas",
			"Current integer .status.replicas",
			"Ready integer .status.readyReplicas",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		columns: columns(
			"Addresstype string .addressType",
			"Endpoints string .endpoints[*].addresses[*]",
		),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"},
		columns:              columns(),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "limitranges"},
		columns:              columns(),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		columns:              columns(),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		columns:              columns(),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
		columns:              columns(),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
		columns:              columns("Policyname string .spec.policyName"),
	},
	{
		GroupVersionResource: schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		columns: columns(
			"Service string .spec.service.name",
			"Available string .status.conditions[?(@.type==\"Available\")].status",
		),
	},
	{
		GroupVersionResource: rbac("roles"),
		columns:              columns(),
	},
	{
		GroupVersionResource: rbac("rolebindings"),
		required:             []string{"roleRef.kind", "roleRef.name"},
		columns:              columns("Role string .roleRef.name"),
	},
	{
		GroupVersionResource: rbac("clusterroles"),
		columns:              columns(),
	},
	{
		GroupVersionResource: rbac("clusterrolebindings"),
		required:             []string{"roleRef.kind", "roleRef.name"},
		columns:              columns("Role string .roleRef.name"),
	},
}

func rbac(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
}

// columns parses "<name> <type> <path>", and appends the age.
func columns(texts ...string) (columns []apiextensionsv1.CustomResourceColumnDefinition) {
	for _, text := range append(texts, "Age date .metadata.creationTimestamp") {
		words := strings.Fields(text)
		columns = append(columns, apiextensionsv1.CustomResourceColumnDefinition{Name: words[0], Type: words[1], JSONPath: words[2]})
	}
	return columns
}
