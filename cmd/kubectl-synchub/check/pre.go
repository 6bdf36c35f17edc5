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

package check

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/wording"
)

// preProvider checks whether the user can prepare the provider workspace.
func (r *Report) preProvider(ctx context.Context, config *rest.Config, workspace, hubUser string) error {
	const area = "provider"
	missing, outdated, err := dryRunInit(ctx, config, workspace, hubUser)
	switch changes := len(missing) + len(outdated); {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		r.add(area, Problem, "you may not prepare the provider workspace %s, which is for an administrator of kcp: %v", workspace, err)
	case err != nil:
		r.add(area, Problem, "the provider workspace %s cannot be prepared: %v", workspace, err)
	case changes == 0:
		r.add(area, OK, "%s is prepared for this version", workspace)
	default:
		r.add(area, OK, "`kubectl synchub init` can prepare %s: it would create or change %s", workspace, wording.Count(changes, "object", "objects"))
	}
	return nil
}

// installRights are the rights that the installation of the chart needs. All are in the namespace of the hub.
var installRights = []authorizationv1.ResourceAttributes{
	{Resource: "namespaces", Verb: "create"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verb: "create"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Verb: "create"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings", Verb: "create"},
	{Group: "apps", Resource: "deployments", Verb: "create"},
	{Resource: "serviceaccounts", Verb: "create"},
	{Resource: "secrets", Verb: "create"},
	{Resource: "configmaps", Verb: "create"},
	{Resource: "services", Verb: "create"},
	{Group: "synchub.dev", Resource: "publishedresources", Verb: "create"},
}

// preHosting checks whether the hub can run in the hosting cluster, and whether the user can install it.
func (r *Report) preHosting(ctx context.Context, c client.Client, versions discovery.ServerVersionInterface, namespace string) {
	found := r.hostingVersion(versions)
	if found == "" {
		return
	}
	var missing []string
	for _, right := range installRights {
		right.Namespace = namespace
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		if err := c.Create(ctx, review); err != nil {
			r.add(hostingArea, Skipped, "your rights in the hosting cluster cannot be checked: %v", err)
			return
		}
		if !review.Status.Allowed {
			missing = append(missing, right.Verb+" "+right.Resource)
		}
	}
	if len(missing) > 0 {
		r.add(hostingArea, Problem, "to install the chart into the namespace %s you lack the rights %s", namespace, wording.First(len(installRights), missing))
		return
	}
	r.add(hostingArea, OK, "the hosting cluster has version %s, and you may install the chart into the namespace %s", found, namespace)
}
