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

package rbac

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Tenancy is what the hub keeps on a cluster for workload workspaces. The zero value is nothing.
type Tenancy struct {
	// Role is the ClusterRole that each workspace has in its namespaces. If it is not empty, the hub writes no objects itself, except
	// those for the workspaces: it impersonates the workspaces' ServiceAccounts.
	Role string
	// ResourceQuotas and LimitRanges are true if the hub keeps one of them in each namespace of a workspace.
	ResourceQuotas, LimitRanges bool
}

// TenancyOf returns what the hub keeps on the cluster of a SyncTarget with these settings.
func TenancyOf(tenancy *edgev2alpha1.Tenancy) Tenancy {
	if tenancy == nil || tenancy.Namespaces != edgev2alpha1.NamespacesPerWorkspace {
		return Tenancy{}
	}
	of := Tenancy{ResourceQuotas: tenancy.ResourceQuota != nil, LimitRanges: tenancy.LimitRange != nil}
	if tenancy.Identity == edgev2alpha1.TenantIdentityWorkspace {
		of.Role = tenancy.Role
	}
	return of
}

var (
	serviceAccounts = schema.GroupResource{Resource: "serviceaccounts"}
	resourceQuotas  = schema.GroupResource{Resource: "resourcequotas"}
	limitRanges     = schema.GroupResource{Resource: "limitranges"}
	roleBindings    = schema.GroupResource{Group: rbacGroup, Resource: "rolebindings"}
	clusterRoles    = schema.GroupResource{Group: rbacGroup, Resource: "clusterroles"}
)

// asRead returns the resources as the hub itself uses them: if it impersonates workspaces, it only reads all resources except
// namespaces.
func (t Tenancy) asRead(resources []Resource) []Resource {
	if t.Role == "" {
		return resources
	}
	resources = slices.Clone(resources)
	for i := range resources {
		if one := &resources[i]; one.GroupResource() != namespaces {
			one.Up, one.Down = one.Up || one.Down, false
		}
	}
	return resources
}

// addTo adds the verbs that the hub needs for workspaces in the whole cluster.
func (t Tenancy) addTo(needed verbTable) {
	if t.Role != "" {
		needed.add(serviceAccounts, readVerbs...)
		needed.add(roleBindings, slices.Concat(readVerbs, writeVerbs)...)
	}
	if t.ResourceQuotas {
		needed.add(resourceQuotas, slices.Concat(readVerbs, writeVerbs)...)
	}
	if t.LimitRanges {
		needed.add(limitRanges, slices.Concat(readVerbs, writeVerbs)...)
	}
}

// clusterRules returns the rule for the one ClusterRole that the hub may bind.
func (t Tenancy) clusterRules() []rbacv1.PolicyRule {
	if t.Role == "" {
		return nil
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{clusterRoles.Group}, Resources: []string{clusterRoles.Resource}, ResourceNames: []string{t.Role}, Verbs: []string{"bind"}}}
}

// AddedBinding returns the permission to bind the ClusterRole, unless the rules allow it.
func (t Tenancy) AddedBinding(before []rbacv1.PolicyRule) []authorizationv1.ResourceAttributes {
	return MissingAttributes(t.binding(), asResourceRules(before))
}

// binding returns the permission to bind the ClusterRole.
func (t Tenancy) binding() []authorizationv1.ResourceAttributes {
	if t.Role == "" {
		return nil
	}
	return []authorizationv1.ResourceAttributes{{Group: clusterRoles.Group, Resource: clusterRoles.Resource, Name: t.Role, Verb: "bind"}}
}

// accountVerbs are the verbs for the ServiceAccounts of workspaces, in their namespace.
func (t Tenancy) accountVerbs() verbTable {
	needed := verbTable{}
	if t.Role != "" {
		needed.add(serviceAccounts, slices.Concat(writeVerbs, []string{"impersonate"})...)
	}
	return needed
}

// AccountRules returns the rules of the hub's Role in the namespace of the workspaces' ServiceAccounts; none if there is no such Role.
func (t Tenancy) AccountRules() []rbacv1.PolicyRule { return t.accountVerbs().rules() }

// attributes returns the permissions beside those in the whole cluster.
func (t Tenancy) attributes() []authorizationv1.ResourceAttributes {
	return append(t.binding(), t.accountVerbs().attributes(edgev2alpha1.TenantsNamespace)...)
}
