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
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

// item is an object that the drain acts on or reports.
type item struct {
	cleanup.Object
	cleanup.Decision
	resource schema.GroupVersionResource
}

func (i item) key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.Namespace, Name: i.Name}
}

// listing holds the objects of a target that are, or may be, the hub's.
type listing struct {
	items []item
	// forbidden are the locations whose objects the target does not let the hub list. outOfScope are the
	// forbidden locations that the hub should no longer read. notServed are resources that the target does not
	// serve now, although it may still have objects of them.
	forbidden, outOfScope, notServed []location
	// pages is how many pages were read, and size roughly how many bytes the items take.
	pages, size int64
}

const (
	// maxListPages and maxListBytes bound a listing. A page usually has 500 objects. In lists of namespaces and CRDs, most of them
	// are not the hub's.
	maxListPages = 10_000
	maxListBytes = 128 << 20
)

// errListTooLarge means that the target returns more objects than a listing may hold.
var errListTooLarge = errors.New("the target shows more than the hub takes")

// location is a resource in one namespace, or in all if namespace is empty.
type location struct {
	schema.GroupResource
	namespace string
}

func (l listing) withAction(action cleanup.Action) []item {
	var some []item
	for _, item := range l.items {
		if item.Action == action {
			some = append(some, item)
		}
	}
	return some
}

// listRequest is a list that the drain makes.
type listRequest struct {
	resource schema.GroupVersionResource
	selector string
	// optional is true if the drain may ignore that the target forbids the list, because objects found only there stay anyway.
	optional bool
}

func allResources(schema.GroupResource) bool { return true }

// listRequests returns the lists that find all objects of the hub. Namespaces and CRDs are listed without a selector: those that
// the hub ensured, installed or released do not have the owner label.
func (r *drainer) listRequests() []listRequest {
	selector := ownership.OwnerLabel + "=" + r.Owner.LabelValue()
	var all []listRequest
	for _, resource := range r.Resources {
		all = append(all, listRequest{resource: resource, selector: selector})
	}
	all = append(all, listRequest{resource: cleanup.Namespaces.WithVersion("v1"), optional: true})
	return append(all, listRequest{resource: cleanup.CRDs.WithVersion("v1"), optional: true})
}

// listObjects lists the hub's objects of the included resources.
func (r *drainer) listObjects(ctx context.Context, included func(schema.GroupResource) bool) (listing, error) {
	ctx = requestclass.With(ctx, requestclass.Extra)
	var result listing
	seen := map[types.UID]bool{}
	for _, request := range r.listRequests() {
		if !included(request.resource.GroupResource()) {
			continue
		}
		items, err := r.listEverywhere(ctx, request, &result)
		if err != nil {
			return listing{}, err
		}
		for _, item := range items {
			if !seen[item.UID] {
				seen[item.UID] = true
				result.items = append(result.items, item)
			}
		}
	}
	return result, nil
}

// listEverywhere lists the hub's objects of one request in all its namespaces. It adds forbidden locations to result.
func (r *drainer) listEverywhere(ctx context.Context, request listRequest, result *listing) ([]item, error) {
	resource, kind, namespaced, err := r.resolve(ctx, request.resource)
	switch {
	case errors.Is(err, targets.ErrNotServed):
		return nil, r.recordNotServed(ctx, request, result)
	case apierrors.IsForbidden(err):
		if !request.optional {
			result.forbidden = append(result.forbidden, location{request.resource.GroupResource(), ""})
		}
		return nil, nil
	case err != nil:
		return nil, err
	}
	request.resource = resource
	var items []item
	for _, namespace := range r.namespacesFor(namespaced) {
		found, err := r.listNamespace(ctx, request, kind, namespace, result)
		if err := r.recordForbidden(ctx, request, namespace, err, result); err != nil {
			return nil, err
		}
		items = append(items, found...)
	}
	return items, nil
}

// recordForbidden adds the location of a forbidden list to result, and returns all other errors.
func (r *drainer) recordForbidden(ctx context.Context, request listRequest, namespace string, err error, result *listing) error {
	at := location{request.resource.GroupResource(), namespace}
	switch {
	case errors.Is(err, targets.ErrNotServed):
		return r.recordNotServed(ctx, request, result)
	case !apierrors.IsForbidden(err):
		return err
	case request.optional:
	case namespace != "" && r.Target.IsNamespaceMissing(ctx, namespace):
		// The hub's permissions went with the namespace, and so did the objects.
	case !r.isReadable(namespace):
		result.outOfScope = append(result.outOfScope, at)
	default:
		result.forbidden = append(result.forbidden, at)
	}
	return nil
}

// recordNotServed adds a resource that the target does not serve to result, unless its objects were deleted with its API.
func (r *drainer) recordNotServed(ctx context.Context, request listRequest, result *listing) error {
	resource := request.resource.GroupResource()
	at := location{resource, ""}
	if !slices.Contains(r.ServedResources, resource) || slices.Contains(result.notServed, at) {
		return nil
	}
	isRemoved, err := r.Target.IsAPIRemoved(ctx, resource)
	if err == nil && !isRemoved {
		result.notServed = append(result.notServed, at)
	}
	return err
}

// namespacesFor returns the namespaces in which the drain lists a resource. The empty namespace means the whole
// cluster.
func (r *drainer) namespacesFor(namespaced bool) []string {
	if !namespaced || len(r.ReadableNamespaces) == 0 {
		return []string{""}
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.ReadableNamespaces, r.WrittenNamespaces))))
}

// isReadable reports whether the hub is meant to read in the namespace.
func (r *drainer) isReadable(namespace string) bool {
	return len(r.ReadableNamespaces) == 0 || slices.Contains(r.ReadableNamespaces, namespace)
}

// listNamespace lists the hub's objects of one request in a namespace, or in all if namespace is empty. It adds to the page and
// byte counts of result. Beyond the limits it quarantines the target and returns errListTooLarge.
func (r *drainer) listNamespace(ctx context.Context, request listRequest, kind, namespace string, result *listing) ([]item, error) {
	var items []item
	for next, more := "", true; more; more = next != "" {
		page, err := r.Target.ListMetadata(ctx, request.resource, namespace, request.selector, next)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: %w", targets.ErrNotServed, err)
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			object := cleanup.Object{Resource: request.resource.GroupResource(), Kind: kind, PartialObjectMetadata: &page.Items[i]}
			if decision := cleanup.Plan(r.Mode, r.Owner, object, r.AllowsCascade); decision.Action != cleanup.ActionIgnore {
				// A copy lets the garbage collector free the rest of the page.
				object.PartialObjectMetadata = &metav1.PartialObjectMetadata{ObjectMeta: object.ObjectMeta}
				object.ManagedFields = nil
				items = append(items, item{Object: object, Decision: decision, resource: request.resource})
				result.size += cachesize.SizeOf(object.PartialObjectMetadata)
			}
		}
		if result.pages++; result.pages > maxListPages || result.size > maxListBytes {
			r.Target.StartQuarantine(fmt.Sprintf("there seems to be no end of %s that may be the hub's", request.resource.GroupResource()))
			return nil, errListTooLarge
		}
		next = page.Continue
	}
	return slices.Clip(items), nil
}

// resolve returns a served version of the resource, its kind, and whether it is namespaced. The target may no
// longer serve the version that the hub wrote.
func (r *drainer) resolve(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionResource, string, bool, error) {
	kind, namespaced, err := r.Target.ResolveResource(ctx, resource)
	if resource.Version != "" && !errors.Is(err, targets.ErrNotServed) {
		return resource, kind, namespaced, err
	}
	if kind, namespaced, err = r.Target.ResolveResource(ctx, resource.GroupResource().WithVersion("")); err != nil {
		return resource, "", namespaced, err
	}
	resource, _, err = r.Target.Resolve(ctx, schema.GroupVersionKind{Group: resource.Group, Kind: kind})
	return resource, kind, namespaced, err
}
