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

package waves

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// Wave is a step of a set: a wave starts when all lower waves have been tried.
type Wave int

// The waves, first to last.
const (
	Namespaces Wave = iota
	CRDs
	RBAC
	Config
	Workloads
	Webhooks
)

// rbacGroup and admissionGroup are the API groups with a wave of their own.
const (
	rbacGroup      = "rbac.authorization.k8s.io"
	admissionGroup = "admissionregistration.k8s.io"
)

// configResources are the core resources that workloads read when they start.
var configResources = []string{"configmaps", "secrets", "persistentvolumes", "persistentvolumeclaims", "resourcequotas", "limitranges"}

// Of returns the wave of a resource. A twin has the wave of its original. An unknown resource is a workload: a custom resource may need objects of all earlier waves,
// and no object of those needs a custom resource.
func Of(resource schema.GroupResource) Wave {
	if original, ok := policy.OriginalOf(resource); ok {
		resource = original
	}
	switch {
	case resource == schema.GroupResource{Resource: "namespaces"}:
		return Namespaces
	case resource == schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:
		return CRDs
	case resource.Group == rbacGroup, resource == schema.GroupResource{Resource: "serviceaccounts"}:
		return RBAC
	case resource.Group == "" && slices.Contains(configResources, resource.Resource),
		resource.Group == "storage.k8s.io", resource.Group == "scheduling.k8s.io":
		return Config
	case resource.Group == admissionGroup, resource.Group == "apiregistration.k8s.io":
		return Webhooks
	default:
		return Workloads
	}
}
