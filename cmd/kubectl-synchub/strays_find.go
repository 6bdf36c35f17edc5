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

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"

	"github.com/synchub-dev/synchub/controllers/departure"
	"github.com/synchub-dev/synchub/controllers/sync/order"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/targets"
)

// stray is an object that bears the marks of a SyncTarget, on a cluster that this does not stand for.
type stray struct {
	departure.Object
	departure.Decision
	owner    ownership.Owner
	resource schema.GroupVersionResource
	mode     departure.Mode
}

// survey is a cluster's share of strays.
type survey struct {
	strays []stray
	// unseen says of which resources, and why, the cluster does not show the objects.
	unseen []string
}

// complete fails unless the cluster showed all.
func (s survey) complete() error {
	if len(s.unseen) > 0 {
		return errors.New("not everything could be looked at: more may be there")
	}
	return nil
}

// containers may be the hub's without its label: see departure.
var containers = []schema.GroupResource{
	{Resource: "namespaces"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
}

// strays returns the objects with marks of the SyncTarget that has the UID, in the order in which they are to go.
func (r *reader) strays(ctx context.Context, uid types.UID, mode departure.Mode, only []string) (survey, error) {
	var found survey
	served, err := r.listable(only)
	if err != nil {
		if !discovery.IsGroupDiscoveryFailedError(err) {
			return found, err
		}
		found.unseen = append(found.unseen, "Some APIs cannot be looked at: "+redact.Error(err).Error())
	}
	owners := map[types.UID]ownership.Owner{}
	var candidates []stray
	for _, api := range served {
		some, err := r.candidates(ctx, api, uid)
		if err != nil {
			found.unseen = append(found.unseen, fmt.Sprintf("%s cannot be listed: %s", api.resource.GroupResource(), redact.Error(err)))
		}
		for _, one := range some {
			if owner, ok := ownership.ClaimedOwner(one.Annotations[ownership.MarkAnnotation]); ok && owner.SyncTarget == uid {
				owner.Sealer = ownership.Believing
				owners[owner.Hub] = owner
			}
		}
		candidates = append(candidates, some...)
	}
	seen := map[types.UID]bool{}
	for _, one := range candidates {
		for _, owner := range owners {
			one.owner, one.mode = owner, mode
			if one.Decision = one.decide(one.PartialObjectMetadata); one.Action != departure.Ignore && !seen[one.UID] {
				seen[one.UID] = true
				found.strays = append(found.strays, one)
			}
		}
	}
	slices.SortFunc(found.strays, func(a, b stray) int {
		return cmp.Or(
			cmp.Compare(order.Of(b.Resource), order.Of(a.Resource)),
			cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return found, nil
}

// listedAPI is a resource to list.
type listedAPI struct {
	resource schema.GroupVersionResource
	kind     string
}

// listable returns the resources that the cluster serves and whose objects can be listed and changed, or those of them that were
// named. The error may be that of a part of the APIs.
func (r *reader) listable(only []string) ([]listedAPI, error) {
	named := map[schema.GroupResource]bool{}
	for _, name := range only {
		resource, err := r.find(name)
		if err != nil {
			return nil, fmt.Errorf("--resources: %w", redact.Error(err))
		}
		named[resource.GroupResource()] = true
	}
	lists, err := r.apis.ServerPreferredResources()
	var all []listedAPI
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "patch", "delete"}}, lists) {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, one := range list.APIResources {
			resource := version.WithResource(one.Name)
			if len(only) == 0 || named[resource.GroupResource()] {
				all = append(all, listedAPI{resource, one.Kind})
			}
		}
	}
	return all, err
}

// candidates returns the objects of a resource that may be the SyncTarget's.
func (r *reader) candidates(ctx context.Context, api listedAPI, uid types.UID) (found []stray, err error) {
	resource := api.resource.GroupResource()
	isContainer := slices.Contains(containers, resource)
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.metadata.Resource(api.resource).List(ctx, options)
	})
	var options metav1.ListOptions
	if !isContainer {
		options.LabelSelector = ownership.OwnerLabel
	}
	err = pages.EachListItem(ctx, options, func(item runtime.Object) error {
		object := item.(*metav1.PartialObjectMetadata)
		owner, _ := ownership.ClaimedOwner(object.Annotations[ownership.MarkAnnotation])
		if _, isEnsured := object.Annotations[ownership.EnsuredAnnotation]; owner.SyncTarget == uid || isContainer && isEnsured {
			object.ManagedFields = nil
			object.SetGroupVersionKind(api.resource.GroupVersion().WithKind(api.kind))
			found = append(found, stray{Object: departure.Object{Resource: resource, Kind: api.kind, PartialObjectMetadata: object}, resource: api.resource})
		}
		return nil
	})
	return found, err
}

// decide says what is to be done about the object as it is now. Nothing is deleted that takes others with it.
func (s stray) decide(now *metav1.PartialObjectMetadata) departure.Decision {
	never := func(schema.GroupResource) bool { return false }
	return departure.Plan(s.mode, s.owner, departure.Object{Resource: s.Resource, Kind: s.Kind, PartialObjectMetadata: now}, never)
}

// errChanged is why an object stays that is not any more as it was listed.
var errChanged = errors.New("it was changed meanwhile, and left alone: run the command again")

// dispose deletes or releases a stray, if it is still the object that was listed and still to be dealt with in this way.
func (r *reader) dispose(ctx context.Context, one stray, dryRun string) error {
	if dryRun == dryRunClient {
		return nil
	}
	var dry []string
	if dryRun == dryRunServer {
		dry = []string{metav1.DryRunAll}
	}
	objects, object := r.metadata.Resource(one.resource).Namespace(one.Namespace), one.PartialObjectMetadata
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if object == nil {
			now, err := objects.Get(ctx, one.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return err
			case now.UID != one.UID || one.decide(now) != one.Decision:
				return errChanged
			}
			object = now
		}
		uid, version := object.UID, object.ResourceVersion
		var err error
		if one.Action == departure.Remove {
			background := metav1.DeletePropagationBackground
			err = objects.Delete(ctx, one.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background, DryRun: dry,
			})
		} else {
			labels, annotations := departure.Traces(one.owner, departure.Object{Resource: one.Resource, Kind: one.Kind, PartialObjectMetadata: object})
			patch, invalid := targets.Edits{RemoveLabels: labels, RemoveAnnotations: annotations, ResourceVersion: version}.Patch(uid)
			if invalid != nil {
				return invalid
			}
			_, err = objects.Patch(ctx, one.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-synchub", DryRun: dry})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		object = nil
		return err
	})
}

// past says what was done about a stray.
func (s stray) past() string {
	if s.Action == departure.Remove {
		return "deleted"
	}
	return "released"
}

// straysTable shows strays, and what becomes of them.
func straysTable(strays []stray) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Resource", Type: "string"}, {Name: "Namespace", Type: "string"}, {Name: "Name", Type: "string"}, {Name: "Then", Type: "string"}, {Name: "Reason", Type: "string"},
	}}
	for _, one := range strays {
		then := map[departure.Action]string{
			departure.Remove: "deleted", departure.Await: "is being deleted", departure.Release: "released", departure.Keep: "left as it is",
		}[one.Action]
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{one.Resource.String(), one.Namespace, one.Name, then, one.Reason}})
	}
	return table
}
