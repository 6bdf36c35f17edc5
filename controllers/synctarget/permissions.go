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

package synctarget

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Reasons of the condition SyncerAuthorized. It also has the reasons of [targets.Health] and of credentials.
const (
	ReasonAuthorized         = "Authorized"
	ReasonMissingPermissions = "MissingPermissions"
	ReasonUnknownPermissions = "UnknownPermissions"
)

// maxListedResources is how many resources a message about missing permissions lists.
const maxListedResources = 20

// authorizedCondition returns whether the credentials have the permissions that the synced resources and the tenancy need.
// Missing permissions do not make a SyncTarget unready: the hub syncs all other resources.
func authorizedCondition(tenancy *edgev2alpha1.Tenancy, access targets.Permissions, health targets.Health, problem *blocker) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionSyncerAuthorized, Status: metav1.ConditionUnknown}
	switch {
	case problem != nil:
		condition.Reason, condition.Message = problem.reason, problem.message
	case !health.Up:
		condition.Reason, condition.Message = health.Reason, health.Message
	case access.Problem != "":
		condition.Reason, condition.Message = ReasonUnknownPermissions, access.Problem
	case !access.Known:
		condition.Reason, condition.Message = ReasonUnknownPermissions, "The target has not yet reported the hub's permissions."
	case len(access.Missing) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, ReasonMissingPermissions
		condition.Message = "On the target the hub may not use: " + rbac.DescribeAttributes(access.Missing, maxListedResources) + adviceOnMissing(tenancy)
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonAuthorized, "The hub has the permissions on the target that the synced resources need."
	}
	return condition
}

// adviceOnMissing returns how to grant missing permissions.
func adviceOnMissing(tenancy *edgev2alpha1.Tenancy) string {
	if role := rbac.TenancyOf(tenancy).Role; role != "" {
		return fmt.Sprintf(". Configs in the mailbox and spec.tenancy ask for that. Grant it: `kubectl synchub register NAME --target-kubeconfig FILE --tenancy PerWorkspace --tenant-role %s --add-resources RESOURCES`.", role)
	}
	return ". Configs in the mailbox ask for some of that. If the mailbox's users may have it there, grant it: `kubectl synchub register NAME --target-kubeconfig FILE --add-resources RESOURCES`."
}

// neededResources returns the resources that the hub uses on a target. It reads them from the ledger, where the
// hub records them before the first write. The view may be nil. With a view, the result contains which
// resources are only upsynced and which CRDs the hub installs.
func neededResources(recorded []ledger.Resource, view *syncmanager.View) []rbac.Resource {
	var resources []rbac.Resource
	for _, entry := range recorded {
		name := schema.GroupResource{Group: entry.Group, Resource: entry.Resource}
		resource := rbac.Resource{Group: entry.Group, Resource: entry.Resource, Down: true, Up: true}
		if view != nil {
			resource.Down, resource.ClusterScoped = !isUpsyncOnly(entry, name, view), isClusterScoped(entry, view)
			if state, ok := view.CRDs[name]; ok {
				resource.InstallsCRD = state.Installed || !state.Ready
			}
		}
		resources = append(resources, resource)
	}
	return rbac.MergeResources(resources)
}

// isClusterScoped reports whether objects of a resource are known to be cluster-scoped. A resource that conversions produce is
// cluster-scoped if its source is.
func isClusterScoped(entry ledger.Resource, view *syncmanager.View) bool {
	return slices.ContainsFunc(view.Published, func(resource plan.Resource) bool {
		group := metav1.GroupResource(resource.GroupResource())
		return !resource.Namespaced && (entry.GroupResource == group || slices.Contains(entry.ConvertedFrom, group))
	})
}

// isUpsyncOnly reports whether the configs select a resource for upsync only.
func isUpsyncOnly(entry ledger.Resource, name schema.GroupResource, view *syncmanager.View) bool {
	position := slices.IndexFunc(view.Published, func(resource plan.Resource) bool { return resource.GroupResource() == name })
	if position < 0 || len(entry.ConvertedFrom) > 0 {
		return false
	}
	published := view.Published[position]
	return !published.SelectAll && !published.RelatedOnly && !view.Matcher.SelectsDown(name, published.Kind) && view.Matcher.SelectsUp(name, published.Kind)
}

// permissions returns the known permissions of the hub on the target, and lets the connection check them again if that is due.
func (c *Controller) permissions(syncTarget *edgev2alpha1.SyncTarget, found observedState) targets.Permissions {
	if found.connection == nil {
		return targets.Permissions{}
	}
	var known *syncmanager.View
	if view, ok := c.Sync.View(syncTarget.UID); ok {
		known = &view
	}
	needed := rbac.RequiredAttributes(neededResources(c.Ledger.Get(syncTarget.UID).Resources, known), rbac.TenancyOf(syncTarget.Spec.Tenancy), found.connection.Namespaces...)
	return found.connection.Permissions.Get(needed, found.trustedUntil)
}
