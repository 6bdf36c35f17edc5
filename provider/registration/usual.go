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

package registration

import (
	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rights"
)

// usual are the resources that the chart publishes unless told otherwise.
var usual = []string{
	"configmaps", "namespaces", "pods:up", "secrets", "serviceaccounts", "services",
	"customresourcedefinitions.apiextensions.k8s.io",
	"daemonsets.apps", "deployments.apps", "statefulsets.apps",
	"cronjobs.batch", "jobs.batch",
	"ingresses.networking.k8s.io",
	"clusterrolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
	"rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io",
}

// Choose returns the resources to grant rights for, and says where they are from: those asked for, or else those that the
// hub lists for the SyncTarget, or else what the chart publishes by default. What was granted before stays, unless resources
// are asked for.
func Choose(asked []rights.Resource, syncTarget *edgev2alpha1.SyncTarget, granted []rights.Resource) (resources []rights.Resource, source string, err error) {
	if len(asked) > 0 {
		return rights.Merge(asked), "--resources", nil
	}
	source = "what the chart publishes by default"
	if syncTarget != nil && len(syncTarget.Status.SyncedResources) > 0 {
		source = "what the hub lists in the SyncTarget's status.syncedResources"
		for _, entry := range syncTarget.Status.SyncedResources {
			resources = append(resources, rights.Resource{Group: entry.Group, Resource: entry.Resource, Down: true, Up: true})
		}
	} else if resources, err = rights.ParseAll(usual); err != nil {
		return nil, "", err
	}
	all := rights.Merge(resources, granted)
	if len(all) > len(rights.Merge(resources)) {
		source += ", and what was granted before"
	}
	return all, source, nil
}
