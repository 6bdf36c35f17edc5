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

// kind is what the chart adds to what a cluster says of an API.
type kind struct {
	schema.GroupVersionResource
	// required are fields without which every cluster refuses an object, so that a mailbox does. A cluster says of more
	// fields that they are required than it insists on.
	required []string
	// defaults are those of a cluster, of the few fields that clients read in what a server returns: without
	// updateStrategy `kubectl rollout status` refuses. A field with a default in mailboxes is the hub's on the target, so
	// there is none for what others set there, such as replicas, which an autoscaler does.
	defaults []defaultValue
	// columns are what `kubectl get` prints where the server does not know better. A cluster does not tell them for kinds
	// that it has built in, and computes some, so these are what comes next to them. kcp prints these kinds by itself, as
	// clusters do.
	columns []apiextensionsv1.CustomResourceColumnDefinition
}

// defaultValue is what a field has that nobody sets.
type defaultValue struct{ field, json string }

// rollingUpdate is the default of kinds that are updated by a strategy. What is in the strategy beside its type the target
// adds.
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
		defaults:             rollingUpdate,
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
}

// columns reads "<name> <type> <path>", and adds the age.
func columns(texts ...string) (columns []apiextensionsv1.CustomResourceColumnDefinition) {
	for _, text := range append(texts, "Age date .metadata.creationTimestamp") {
		words := strings.Fields(text)
		columns = append(columns, apiextensionsv1.CustomResourceColumnDefinition{Name: words[0], Type: words[1], JSONPath: words[2]})
	}
	return columns
}
