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

package staleobjects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
)

// StaleObject is an object with the marks of a SyncTarget, on a cluster that the SyncTarget does not stand for.
type StaleObject struct {
	cleanup.Object
	cleanup.Decision
	owner    ownership.Owner
	resource schema.GroupVersionResource
	mode     cleanup.Mode
}

// FoundObjects contains the stale objects of a cluster.
type FoundObjects struct {
	Objects []StaleObject
	// unlisted lists the resources whose objects could not be listed, with the reasons.
	unlisted []string
}

// complete returns an error unless all resources could be listed.
func (s FoundObjects) complete() error {
	if len(s.unlisted) > 0 {
		return errors.New("not everything could be read: more may be there")
	}
	return nil
}

// containers are resources whose objects can belong to the hub without the owner label: the hub ensured, installed or
// released them. See package cleanup.
var containers = []schema.GroupResource{
	{Resource: "namespaces"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
}

// Find returns the objects with marks of the SyncTarget with the given UID, in the order of their removal.
func Find(ctx context.Context, r *cli.Reader, uid types.UID, mode cleanup.Mode, only []string) (FoundObjects, error) {
	var found FoundObjects
	served, err := listableAPIs(r, only)
	if err != nil {
		if !discovery.IsGroupDiscoveryFailedError(err) {
			return found, err
		}
		found.unlisted = append(found.unlisted, "Some APIs cannot be read: "+redact.Error(err).Error())
	}
	owners := map[types.UID]ownership.Owner{}
	var candidates []StaleObject
	for _, api := range served {
		some, err := findCandidates(ctx, r, api, uid)
		if err != nil {
			found.unlisted = append(found.unlisted, fmt.Sprintf("%s cannot be listed: %s", api.resource.GroupResource(), redact.Error(err)))
		}
		for _, one := range some {
			if owner, ok := ownership.ClaimedOwner(one.Annotations[ownership.MarkAnnotation]); ok && owner.SyncTarget == uid {
				owner.Sealer = ownership.InsecureSealer
				owners[owner.Hub] = owner
			}
		}
		candidates = append(candidates, some...)
	}
	seen := map[types.UID]bool{}
	for _, one := range candidates {
		for _, owner := range owners {
			one.owner, one.mode = owner, mode
			if one.Decision = one.decide(one.PartialObjectMetadata); one.Action != cleanup.ActionIgnore && !seen[one.UID] {
				seen[one.UID] = true
				found.Objects = append(found.Objects, one)
			}
		}
	}
	slices.SortFunc(found.Objects, func(a, b StaleObject) int {
		return cmp.Or(
			cmp.Compare(waves.Of(b.Resource), waves.Of(a.Resource)),
			cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return found, nil
}

// listableAPI is a resource to list.
type listableAPI struct {
	resource schema.GroupVersionResource
	kind     string
}

// listableAPIs returns the served resources whose objects can be listed and changed. With only, it returns the named
// ones among them. The error may concern only some API groups; the result then contains the other groups.
func listableAPIs(r *cli.Reader, only []string) ([]listableAPI, error) {
	named := map[schema.GroupResource]bool{}
	for _, name := range only {
		resource, err := r.Find(name)
		if err != nil {
			return nil, fmt.Errorf("--resources: %w", redact.Error(err))
		}
		named[resource.GroupResource()] = true
	}
	lists, err := r.APIs.ServerPreferredResources()
	var all []listableAPI
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "patch", "delete"}}, lists) {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, one := range list.APIResources {
			resource := version.WithResource(one.Name)
			if len(only) == 0 || named[resource.GroupResource()] {
				all = append(all, listableAPI{resource, one.Kind})
			}
		}
	}
	return all, err
}

// findCandidates returns the objects of a resource that may belong to the SyncTarget.
func findCandidates(ctx context.Context, r *cli.Reader, api listableAPI, uid types.UID) (found []StaleObject, err error) {
	resource := api.resource.GroupResource()
	isContainer := slices.Contains(containers, resource)
	var options metav1.ListOptions
	if !isContainer {
		options.LabelSelector = ownership.OwnerLabel
	}
	err = r.EachMetadata(ctx, api.resource, options, func(object *metav1.PartialObjectMetadata) error {
		owner, _ := ownership.ClaimedOwner(object.Annotations[ownership.MarkAnnotation])
		if _, isEnsured := object.Annotations[ownership.EnsuredAnnotation]; owner.SyncTarget == uid || isContainer && isEnsured {
			object.ManagedFields = nil
			object.SetGroupVersionKind(api.resource.GroupVersion().WithKind(api.kind))
			found = append(found, StaleObject{Object: cleanup.Object{Resource: resource, Kind: api.kind, PartialObjectMetadata: object}, resource: api.resource})
		}
		return nil
	})
	return found, err
}

// decide returns the action for the object in its current state. It never deletes an object that contains other objects.
func (s StaleObject) decide(now *metav1.PartialObjectMetadata) cleanup.Decision {
	never := func(schema.GroupResource) bool { return false }
	return cleanup.Plan(s.mode, s.owner, cleanup.Object{Resource: s.Resource, Kind: s.Kind, PartialObjectMetadata: now}, never)
}

// ErrChanged means that an object was changed after it was listed, and was left alone.
var ErrChanged = errors.New("it was changed at the same time, and is left as it is: run the command again")

// DeleteOrRelease deletes or releases a stale object, if it is still the listed object and its action is unchanged.
func DeleteOrRelease(ctx context.Context, r *cli.Reader, one StaleObject, dryRun string) error {
	if dryRun == cli.DryRunClient {
		return nil
	}
	dry := cli.DryRunOption(dryRun)
	objects, object := r.Metadata.Resource(one.resource).Namespace(one.Namespace), one.PartialObjectMetadata
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if object == nil {
			now, err := objects.Get(ctx, one.Name, metav1.GetOptions{})
			switch {
			case notfound.Proves(err, one.resource.GroupResource(), one.Name):
				return nil
			case err != nil:
				return err
			case now.UID != one.UID || one.decide(now) != one.Decision:
				return ErrChanged
			}
			object = now
		}
		uid, version := object.UID, object.ResourceVersion
		var err error
		if one.Action == cleanup.ActionDelete {
			background := metav1.DeletePropagationBackground
			err = objects.Delete(ctx, one.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background, DryRun: dry,
			})
		} else {
			labels, annotations := cleanup.MarkKeys(one.owner, cleanup.Object{Resource: one.Resource, Kind: one.Kind, PartialObjectMetadata: object})
			patch, invalid := metadatapatch.Patch{RemoveLabels: labels, RemoveAnnotations: annotations, ResourceVersion: version}.Merge(uid)
			if invalid != nil {
				return invalid
			}
			_, err = objects.Patch(ctx, one.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-synchub", DryRun: dry})
		}
		if notfound.Proves(err, one.resource.GroupResource(), one.Name) {
			return nil
		}
		object = nil
		return err
	})
}

// pastTense describes the completed action.
func (s StaleObject) pastTense() string {
	if s.Action == cleanup.ActionDelete {
		return "deleted"
	}
	return "released"
}

// printObjects prints the stale objects and their actions as a table.
func printObjects(out io.Writer, objects []StaleObject) error {
	columns := cli.NewColumns(out)
	columns.Line("RESOURCE\tNAMESPACE\tNAME\tTHEN\tREASON")
	for _, one := range objects {
		then := map[cleanup.Action]string{
			cleanup.ActionDelete: "deleted", cleanup.ActionWait: "is being deleted", cleanup.ActionRelease: "released", cleanup.ActionKeep: "left as it is",
		}[one.Action]
		columns.Line("%s\t%s\t%s\t%s\t%s", one.Resource, one.Namespace, one.Name, then, one.Reason)
	}
	return columns.Flush()
}
