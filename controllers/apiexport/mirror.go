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

package apiexport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	apischemas "github.com/synchub-dev/synchub/apis/schemas"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	providerschemas "github.com/synchub-dev/synchub/provider/schemas"
)

// copyPrefix begins the names of the copies of schemas that the workload export has.
//
// Two exports must not share an APIResourceSchema. kcp v0.31.2 creates one bound CRD for a schema, and finds
// the storage of a CRD by its UID alone, without the identity of the export (storageMap in its apiextensions
// server). With a shared schema, requests through one export read and write the objects of the other. After a
// change of the schema, objects are not found where they were stored (tried: the objects of mailboxes
// vanished).
const copyPrefix = apischemas.WorkloadSchemaPrefix

// copyName returns the name of the copy of a schema. Only the part of the name before the first dot is free.
func copyName(schemaName string) string { return copyPrefix + schemaName }

// inWorkload returns the name of a resource of the mailbox export in the workload export: a twin has the name of its original there.
func inWorkload(resource schema.GroupResource) schema.GroupResource {
	return policy.InWorkload(resource.WithVersion("")).GroupResource()
}

// withOriginals returns the spec of the mailbox export with the originals in place of the twins, for the workload export. It has a claim
// for an original that kcp serves, and a schema for any other one, which [Controller.ensureCopy] creates.
func withOriginals(mailbox *apisv1alpha2.APIExportSpec) *apisv1alpha2.APIExportSpec {
	spec := mailbox.DeepCopy()
	spec.Resources = nil
	for i := range mailbox.Resources {
		exported := &mailbox.Resources[i]
		resource := schema.GroupResource{Group: exported.Group, Resource: exported.Name}
		original := inWorkload(resource)
		switch {
		case original == resource:
			spec.Resources = append(spec.Resources, *exported.DeepCopy())
		case findResourceSchema(mailbox, original) != nil:
			// Mailboxes have the original too.
		case policy.IsServedByKCP(original):
			addEntry(spec, exportEntry{GroupResource: original})
		default:
			addEntry(spec, exportEntry{GroupResource: original, schema: originalSchema(exported.Schema, original)})
		}
	}
	return spec
}

// originalSchema returns the name of the schema of a resource of the workload export that corresponds to a schema of the mailbox
// export. It ends with the group, or with core.
func originalSchema(name string, resource schema.GroupResource) string {
	prefix, isTwin := strings.CutSuffix(name, policy.TwinGroup)
	if !isTwin {
		return name
	}
	return prefix + cmp.Or(resource.Group, "core")
}

// mirrorSpec returns the spec of the workload export with the published APIs of the mailbox export, given [withOriginals]: copies of
// the schemas, and the same claims. The kinds of the group edge.kubestellar.io, the claims of `synchub init`, and the refused resources stay as they are.
func mirrorSpec(mailbox, workload *apisv1alpha2.APIExportSpec, refused map[schema.GroupResource]error) *apisv1alpha2.APIExportSpec {
	mirrored := workload.DeepCopy()
	for _, resource := range mirroredResources(mailbox, workload) {
		if refused[resource] == nil {
			mirrorResource(mailbox, mirrored, resource)
		}
	}
	return mirrored
}

// mirroredResources returns the resources of both exports that are mirrored: first the mailbox export's in its
// order, then the resources that only the workload export has.
func mirroredResources(specs ...*apisv1alpha2.APIExportSpec) (mirrored []schema.GroupResource) {
	add := func(resource schema.GroupResource) {
		isOwn := resource.Group == edgev2alpha1.GroupVersion.Group || slices.Contains(bootstrap.WorkloadClaims(), resource)
		if !isOwn && !slices.Contains(mirrored, resource) {
			mirrored = append(mirrored, resource)
		}
	}
	for _, spec := range specs {
		for _, exported := range spec.Resources {
			add(schema.GroupResource{Group: exported.Group, Resource: exported.Name})
		}
		for _, claim := range spec.PermissionClaims {
			add(schema.GroupResource{Group: claim.Group, Resource: claim.Resource})
		}
	}
	return mirrored
}

// mirrorResource changes the workload export so that it exports and claims one resource as the mailbox export does.
func mirrorResource(mailbox, workload *apisv1alpha2.APIExportSpec, resource schema.GroupResource) {
	switch wanted, present := findResourceSchema(mailbox, resource), findResourceSchema(workload, resource); {
	case wanted == nil:
		workload.Resources = slices.DeleteFunc(workload.Resources, func(exported apisv1alpha2.ResourceSchema) bool {
			return exported.Group == resource.Group && exported.Name == resource.Resource
		})
	case present == nil:
		workload.Resources = append(workload.Resources, withCopy(wanted))
	default:
		*present = withCopy(wanted)
	}
	switch wanted, present := findClaim(mailbox, resource), findClaim(workload, resource); {
	case wanted == nil:
		workload.PermissionClaims = slices.DeleteFunc(workload.PermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool {
			return claim.Group == resource.Group && claim.Resource == resource.Resource
		})
	case present == nil:
		workload.PermissionClaims = append(workload.PermissionClaims, *wanted.DeepCopy())
	default:
		*present = *wanted.DeepCopy()
	}
}

// withCopy returns an entry of the mailbox export with the copy of its schema.
func withCopy(exported *apisv1alpha2.ResourceSchema) apisv1alpha2.ResourceSchema {
	mirrored := *exported.DeepCopy()
	mirrored.Schema = copyName(exported.Schema)
	return mirrored
}

// ensureCopies creates the copies of the schemas of the mailbox export that the workload export needs. It returns the resources of the
// workload export whose copies kcp refuses.
func (c *Controller) ensureCopies(ctx context.Context, mailbox *apisv1alpha2.APIExportSpec) (refused map[schema.GroupResource]error, err error) {
	var errs []error
	refused = map[schema.GroupResource]error{}
	for _, resource := range mirroredResources(mailbox) {
		exported, copied := findResourceSchema(mailbox, resource), inWorkload(resource)
		if exported == nil || copied != resource && policy.IsServedByKCP(copied) {
			continue
		}
		if err := c.ensureCopy(ctx, exported.Schema, copied); isRefusal(err) {
			refused[copied] = err
		} else {
			errs = append(errs, err)
		}
	}
	return refused, errors.Join(errs...)
}

// ensureCopy creates the copy of a schema for a resource of the workload export, unless it exists. Schemas are immutable.
func (c *Controller) ensureCopy(ctx context.Context, name string, resource schema.GroupResource) error {
	copied := copyName(originalSchema(name, resource))
	found, err := c.getSchema(ctx, copied)
	if err != nil || found != nil {
		return err
	}
	source, err := c.getSchema(ctx, name)
	switch {
	case err != nil:
		return err
	case source == nil:
		// The mailbox export names a schema that does not exist yet. The event of the schema follows.
		return nil
	}
	made := providerschemas.Rename(source, copied, resource.Group)
	if err := c.Provider.GetClient().Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create the APIResourceSchema %s: %w", made.Name, err)
	}
	return nil
}

// removesResource reports whether the mailbox export lacks a schema or a claim that the workload export has, so that the mirror
// removes it.
func removesResource(mailbox, workload *apisv1alpha2.APIExportSpec) bool {
	return slices.ContainsFunc(mirroredResources(workload), func(resource schema.GroupResource) bool {
		return findResourceSchema(workload, resource) != nil && findResourceSchema(mailbox, resource) == nil ||
			findClaim(workload, resource) != nil && findClaim(mailbox, resource) == nil
	})
}

// reconcileMirror updates the workload export, and records in the plan which APIs kcp refuses there. It returns
// any other error.
func (c *Controller) reconcileMirror(ctx context.Context, mailbox *apisv1alpha2.APIExport, made *exportPlan) error {
	refused, err := c.mirrorExport(ctx, mailbox)
	if err != nil {
		return err
	}
	return made.markNotPlaceable(refused)
}

// mirrorExport gives the workload export the published APIs of the mailbox export, with one patch. If kcp refuses that patch,
// each resource is patched alone, so that one refused resource does not block other resources. It returns the refused resources.
// Without a workload export there is nothing to do.
func (c *Controller) mirrorExport(ctx context.Context, mailbox *apisv1alpha2.APIExport) (refused map[schema.GroupResource]error, err error) {
	var workload apisv1alpha2.APIExport
	err = c.Provider.GetClient().Get(ctx, types.NamespacedName{Name: c.WorkloadExport}, &workload)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get the APIExport %s: %w", c.WorkloadExport, err)
	}
	if removesResource(withOriginals(&mailbox.Spec), &workload.Spec) {
		// The cache of a hub that has just become the leader may lack an entry that the previous leader added.
		mailbox = &apisv1alpha2.APIExport{}
		if err := c.Provider.GetAPIReader().Get(ctx, types.NamespacedName{Name: c.Export}, mailbox); err != nil {
			return nil, fmt.Errorf("cannot get the APIExport %s, so the APIExport %s keeps its entries: %w", c.Export, c.WorkloadExport, err)
		}
	}
	if refused, err = c.ensureCopies(ctx, &mailbox.Spec); err != nil {
		return nil, err
	}
	wanted := withOriginals(&mailbox.Spec)
	err = c.patchWorkload(ctx, &workload, mirrorSpec(wanted, &workload.Spec, refused))
	if !isRefusal(err) {
		return refused, err
	}
	for _, resource := range mirroredResources(wanted, &workload.Spec) {
		if refused[resource] != nil {
			continue
		}
		changed := workload.Spec.DeepCopy()
		mirrorResource(wanted, changed, resource)
		if err := c.patchWorkload(ctx, &workload, changed); isRefusal(err) {
			refused[resource] = err
		} else if err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// patchWorkload gives the workload export the spec if that differs; on success workload is the changed object.
func (c *Controller) patchWorkload(ctx context.Context, workload *apisv1alpha2.APIExport, spec *apisv1alpha2.APIExportSpec) error {
	if apiequality.Semantic.DeepEqual(workload.Spec, *spec) {
		return nil
	}
	changed := workload.DeepCopy()
	changed.Spec = *spec
	if err := c.Provider.GetClient().Patch(ctx, changed, client.MergeFromWithOptions(workload, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot update the APIExport %s: %w", c.WorkloadExport, err)
	}
	*workload = *changed
	return nil
}

// markNotPlaceable records on each PublishedResource that kcp refuses its API, or an API of its related objects, in the
// workload export. It returns an error for the resources that concern no PublishedResource.
func (p *exportPlan) markNotPlaceable(refused map[schema.GroupResource]error) error {
	reported := map[schema.GroupResource]bool{}
	mark := func(resource *resourcePlan, entry exportEntry) {
		copied := inWorkload(entry.GroupResource)
		if err, ok := refused[copied]; ok {
			reported[copied] = true
			resource.notPlaceable = append(resource.notPlaceable, fmt.Sprintf("kcp refuses %s in the workload export: %s", entry, inOneLine(err)))
		}
	}
	for _, resource := range p.resources {
		resource.isMirrorKnown = true
		if resource.entry != nil {
			mark(resource, *resource.entry)
		}
	}
	for _, related := range p.relatedAPIs {
		for _, ref := range related.refs {
			mark(ref.resourcePlan, related.entry)
		}
	}
	var unreported []error
	for resource, err := range refused {
		if !reported[resource] {
			unreported = append(unreported, fmt.Errorf("kcp refuses %s in the workload export as it is in the mailbox export: %w", resource, err))
		}
	}
	return errors.Join(unreported...)
}
