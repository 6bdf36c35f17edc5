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

package departure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/provider/holdings"
	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/targets"
)

// item is an object that something is to be done about, or to be said of.
type item struct {
	Object
	Decision
	resource schema.GroupVersionResource
}

func (i item) key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.Namespace, Name: i.Name}
}

// survey is what a target holds that is, or may be, the hub's.
type survey struct {
	items []item
	// unseen are resources whose objects the target does not show to the hub, and abandoned those that it is not meant to see
	// any more.
	unseen, abandoned []area
	// pages is how many pages were read, and size about how many bytes the items take.
	pages, size int64
}

const (
	// maxPages and maxSize bound a survey: a page has 500 objects as a rule, of which most are not the hub's where lists are of
	// namespaces and definitions.
	maxPages = 10_000
	maxSize  = 128 << 20
)

// errTooMuch means that a target shows more than a survey takes.
var errTooMuch = errors.New("the target shows more than the hub takes")

// area is where objects of a resource may be: in a namespace, or anywhere.
type area struct {
	schema.GroupResource
	namespace string
}

func (s survey) of(action Action) []item {
	var some []item
	for _, item := range s.items {
		if item.Action == action {
			some = append(some, item)
		}
	}
	return some
}

// scope is a list to make.
type scope struct {
	resource schema.GroupVersionResource
	selector string
	// optional is true if it does no harm that the target does not let the hub see it: what it would show stays anyway.
	optional bool
}

func everything(schema.GroupResource) bool { return true }

// scopes returns what there is to list. Namespaces that were made for their contents, definitions that were installed, and
// those of both that the hub let go of do not carry the label of the owner.
func (r *run) scopes() []scope {
	label := r.Owner.LabelValue()
	var all []scope
	for _, resource := range r.Resources {
		all = append(all, scope{resource: resource, selector: ownership.OwnerLabel + "=" + label})
	}
	all = append(all, scope{resource: namespaces.WithVersion("v1"), optional: true})
	return append(all, scope{resource: definitions.WithVersion("v1"), optional: true})
}

// survey lists what there is of some resources.
func (r *run) survey(ctx context.Context, included func(schema.GroupResource) bool) (survey, error) {
	ctx = requests.As(ctx, requests.Extra)
	var result survey
	seen := map[types.UID]bool{}
	for _, scope := range r.scopes() {
		if !included(scope.resource.GroupResource()) {
			continue
		}
		items, err := r.look(ctx, scope, &result)
		if err != nil {
			return survey{}, err
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

// look returns the objects of a scope that are the hub's, wherever they may be, and notes in the survey where it cannot see them.
func (r *run) look(ctx context.Context, scope scope, result *survey) ([]item, error) {
	resource, kind, namespaced, err := r.resolve(ctx, scope.resource)
	switch {
	case errors.Is(err, targets.ErrNotServed):
		// Its objects went with the API.
		return nil, nil
	case apierrors.IsForbidden(err):
		if !scope.optional {
			result.unseen = append(result.unseen, area{scope.resource.GroupResource(), ""})
		}
		return nil, nil
	case err != nil:
		return nil, err
	}
	scope.resource = resource
	var items []item
	for _, namespace := range r.namespacesFor(namespaced) {
		found, err := r.list(ctx, scope, kind, namespace, result)
		if err := r.unlessHidden(ctx, scope, namespace, err, result); err != nil {
			return nil, err
		}
		items = append(items, found...)
	}
	return items, nil
}

// unlessHidden returns the error of a list, unless that says that the target does not show the objects, which is noted.
func (r *run) unlessHidden(ctx context.Context, scope scope, namespace string, err error, result *survey) error {
	at := area{scope.resource.GroupResource(), namespace}
	switch {
	case errors.Is(err, targets.ErrNotServed):
	case !apierrors.IsForbidden(err):
		return err
	case scope.optional:
	case namespace != "" && r.Target.LacksNamespace(ctx, namespace):
		// The rights went with it, and so did its objects.
	case !r.isReadable(namespace):
		result.abandoned = append(result.abandoned, at)
	default:
		result.unseen = append(result.unseen, at)
	}
	return nil
}

// namespacesFor returns where objects of a resource are looked for, the empty namespace for the whole cluster.
func (r *run) namespacesFor(namespaced bool) []string {
	if !namespaced || len(r.Readable) == 0 {
		return []string{""}
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Readable, r.Placed))))
}

// isReadable tells whether the hub is meant to read there.
func (r *run) isReadable(namespace string) bool {
	return len(r.Readable) == 0 || slices.Contains(r.Readable, namespace)
}

// list returns the objects of a scope in a namespace, or in all if that is empty, that are the hub's, and counts them to the survey.
func (r *run) list(ctx context.Context, scope scope, kind, namespace string, result *survey) ([]item, error) {
	var items []item
	for next, more := "", true; more; more = next != "" {
		page, err := r.Target.Page(ctx, scope.resource, namespace, scope.selector, next)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: %w", targets.ErrNotServed, err)
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			object := Object{Resource: scope.resource.GroupResource(), Kind: kind, PartialObjectMetadata: &page.Items[i]}
			if decision := Plan(r.Mode, r.Owner, object, r.Cascades); decision.Action != Ignore {
				// The rest of the page goes.
				object.PartialObjectMetadata = &metav1.PartialObjectMetadata{ObjectMeta: object.ObjectMeta}
				object.ManagedFields = nil
				items = append(items, item{Object: object, Decision: decision, resource: scope.resource})
				result.size += holdings.SizeOf(object.PartialObjectMetadata)
			}
		}
		if result.pages++; result.pages > maxPages || result.size > maxSize {
			r.Target.LeaveAlone(fmt.Sprintf("there seems to be no end of %s that may be the hub's", scope.resource.GroupResource()))
			return nil, errTooMuch
		}
		next = page.Continue
	}
	return slices.Clip(items), nil
}

// resolve returns the version of a resource that the target serves, the kind, and whether its objects are in namespaces. The
// version that was written once may not be served any more.
func (r *run) resolve(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionResource, string, bool, error) {
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
