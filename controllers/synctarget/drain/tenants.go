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

package drain

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/tenants"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// removeTenants removes what the hub keeps on the target for tenants, after their objects: until then they need their rights. It removes
// these objects in all modes, because nobody can use the rights without the hub. It reports whether none is left.
func (r *drainer) removeTenants(ctx context.Context, failed *failures) (done bool, err error) {
	if !r.HasTenants {
		return true, nil
	}
	ctx = requestclass.With(ctx, requestclass.Extra)
	for _, resource := range tenants.Resources() {
		items, err := r.listTenants(ctx, resource)
		if err != nil {
			return false, err
		}
		for _, item := range items {
			failed.add(item, "", r.Target.Delete(requestclass.With(ctx, requestclass.Object), item.resource, item.key(), item.UID))
		}
	}
	r.report.setFailing(failed)
	if err := failed.fatal(); err != nil || len(failed.items) > 0 {
		return false, err
	}
	return true, nil
}

// listTenants lists the objects of one resource that the hub keeps for tenants. It returns none if the target forbids the list: then the
// hub could not create any.
func (r *drainer) listTenants(ctx context.Context, resource schema.GroupVersionResource) (items []item, err error) {
	kind, _, err := r.Target.ResolveResource(ctx, resource)
	if err != nil {
		return nil, err
	}
	for next, more := "", true; more; more = next != "" {
		page, err := r.Target.ListMetadata(ctx, resource, metav1.NamespaceAll, tenants.Selector(r.Owner), next)
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			found := item{Object: cleanup.Object{Resource: resource.GroupResource(), Kind: kind, PartialObjectMetadata: &page.Items[i]}, resource: resource}
			if found.DeletionTimestamp == nil && tenants.IsOwned(r.Owner, found.Annotations, found.Self()) {
				items = append(items, found)
			}
		}
		next = page.Continue
	}
	return items, nil
}
