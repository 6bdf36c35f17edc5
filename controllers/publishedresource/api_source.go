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

package publishedresource

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// APISource is how mailboxes get an API.
type APISource string

const (
	// NativeClaim: the export claims an API that kcp itself serves.
	NativeClaim APISource = "NativeClaim"
	// ForeignClaim: the export claims an API of another export, given by an identity hash.
	ForeignClaim APISource = "ForeignClaim"
	// OwnSchema: the export has a schema for the API.
	OwnSchema APISource = "OwnSchema"
)

// projectionOf returns the names in mailboxes that differ from the names on targets, or nil. An API that acts inside kcp gets its twin
// by itself, unless kcp serves it such that the hub can claim it, or the PublishedResource asks for something else.
func projectionOf(spec *synchubv1alpha1.PublishedResourceSpec) *synchubv1alpha1.Projection {
	projection := synchubv1alpha1.Projection{}
	if spec.Projection != nil {
		projection = *spec.Projection
	}
	isRenamed := projection.Group != nil || projection.Version != "" || projection.Kind != "" || projection.Plural != ""
	isAuto := (spec.API.Source == "" || spec.API.Source == synchubv1alpha1.APISourceAuto) && spec.API.IdentityHash == ""
	_, isNative := NativeAPI(spec.Resource)
	_, hasTwin := policy.FindTwinned(spec.Resource.Group, spec.Resource.Resource, spec.Resource.Kind)
	if isRenamed || !isAuto || isNative || !hasTwin {
		return spec.Projection
	}
	projection.Group = new(policy.TwinGroup)
	return &projection
}

// InMailbox returns the names of the resource in mailboxes. Names that neither the resource nor the projection sets are
// empty.
func InMailbox(spec *synchubv1alpha1.PublishedResourceSpec) synchubv1alpha1.ResourceDescriptor {
	name := spec.Resource
	if projection := projectionOf(spec); projection != nil {
		if projection.Group != nil {
			name.Group = *projection.Group
		}
		name.Version = cmp.Or(projection.Version, name.Version)
		name.Kind = cmp.Or(projection.Kind, name.Kind)
		name.Resource = cmp.Or(projection.Plural, name.Resource)
	}
	return name
}

// OnTarget returns the names of the resource on targets.
func OnTarget(spec *synchubv1alpha1.PublishedResourceSpec) synchubv1alpha1.ResourceDescriptor {
	return spec.Resource
}

// OldestFirst compares PublishedResources by creation time, then by name. The oldest PublishedResource of an
// API takes effect.
func OldestFirst(a, b synchubv1alpha1.PublishedResource) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// FindOldest returns the oldest PublishedResource of a resource, or nil. nameOf is [InMailbox] or [OnTarget], as the
// resource and the kind are named. A PublishedResource may name only one of them.
func FindOldest(
	all []synchubv1alpha1.PublishedResource, nameOf func(*synchubv1alpha1.PublishedResourceSpec) synchubv1alpha1.ResourceDescriptor,
	resource schema.GroupResource, kind string,
) *synchubv1alpha1.PublishedResource {
	var oldest *synchubv1alpha1.PublishedResource
	for i := range all {
		named := nameOf(&all[i].Spec)
		isSame := named.Resource == resource.Resource || named.Resource == "" && named.Kind != "" && named.Kind == kind
		if named.Group == resource.Group && isSame && (oldest == nil || OldestFirst(all[i], *oldest) < 0) {
			oldest = &all[i]
		}
	}
	return oldest
}

// APISourceOf returns how mailboxes get the API. The error names the field that is invalid.
func APISourceOf(spec *synchubv1alpha1.PublishedResourceSpec) (APISource, error) {
	if err := errors.Join(validateProjection(spec), validateTwin(spec), validateNotEnforced(spec)); err != nil {
		return "", err
	}
	source := selectAPISource(spec)
	var err error
	switch source {
	case ForeignClaim:
		err = errors.Join(validateForeignClaim(spec), validateWithoutSchema(spec))
	case NativeClaim:
		err = errors.Join(validateNativeClaim(spec), validateWithoutSchema(spec))
	default:
		err = validateOwnSchema(spec)
	}
	if err != nil {
		return "", err
	}
	return source, nil
}

// selectAPISource returns the API source that the spec requests, valid or not. The result must depend on the
// spec alone, never on state that may change later: objects that were created through one source are invisible
// through another.
func selectAPISource(spec *synchubv1alpha1.PublishedResourceSpec) APISource {
	_, native := NativeAPI(InMailbox(spec))
	switch {
	case spec.API.IdentityHash != "":
		return ForeignClaim
	case spec.API.Source == synchubv1alpha1.APISourceClaim, spec.API.Source != synchubv1alpha1.APISourceSchema && native:
		return NativeClaim
	default:
		return OwnSchema
	}
}

// validateProjection returns an error if the projection replaces a name that the resource does not set. The schema in the
// provider workspace has only the projected names, so the name on the target would be lost.
func validateProjection(spec *synchubv1alpha1.PublishedResourceSpec) error {
	projection := projectionOf(spec)
	if projection == nil {
		return nil
	}
	var errs []error
	require := func(projected, onTarget, field string) {
		if projected != "" && onTarget == "" {
			errs = append(errs, fmt.Errorf("spec.resource.%s: required to publish the resource under another name", field))
		}
	}
	require(projection.Plural, spec.Resource.Resource, "resource")
	require(projection.Kind, spec.Resource.Kind, "kind")
	require(projection.Version, spec.Resource.Version, "version")
	return errors.Join(errs...)
}

// validateTwin returns an error if the group of twins would have something else than a twin, or if objects would come up as twins.
func validateTwin(spec *synchubv1alpha1.PublishedResourceSpec) error {
	inMailbox, named := InMailbox(spec), spec.Resource
	if inMailbox.Group != policy.TwinGroup {
		return nil
	}
	projected := named
	projected.Group = inMailbox.Group
	_, hasTwin := policy.FindTwinned(named.Group, named.Resource, named.Kind)
	switch {
	case !hasTwin || projected != inMailbox:
		return fmt.Errorf("%s: the group %s has the twins of APIs that act inside kcp, under their own names: choose another group", nameField(spec), policy.TwinGroup)
	case spec.PrivilegedUpsync == synchubv1alpha1.PrivilegedUpsyncTargetGovernsMailbox:
		return fmt.Errorf("spec.privilegedUpsync: %s are twins in mailboxes, which govern nothing: publish the API itself to bring its objects up", groupResourceOf(inMailbox))
	default:
		return nil
	}
}

// validateNotEnforced returns an error if kcp itself would act on the objects, or if the API is one of the hub's own.
func validateNotEnforced(spec *synchubv1alpha1.PublishedResourceSpec) error {
	inMailbox := InMailbox(spec)
	if actor, ok := findAPI(kcpEnforcedAPIs, spec.Resource); ok && inMailbox.Group == spec.Resource.Group {
		return fmt.Errorf("spec.resource: %s acts inside kcp itself, which would obey objects that are meant for a target: use spec.api.source Auto, which publishes an inert twin, or another group, by spec.projection.group", actor)
	}
	if actor, ok := findAPI(kcpEnforcedAPIs, inMailbox); ok {
		return fmt.Errorf("spec.projection: %s acts inside kcp itself: choose another group", actor)
	}
	if own, ok := findAPI(hubAPIs, inMailbox); ok {
		return fmt.Errorf("%s: %s selects the objects to sync, and has its schema from the hub", nameField(spec), own)
	}
	return nil
}

// nameField returns the field that sets the name in mailboxes.
func nameField(spec *synchubv1alpha1.PublishedResourceSpec) string {
	if InMailbox(spec) == spec.Resource {
		return "spec.resource"
	}
	return "spec.projection"
}

func validateNativeClaim(spec *synchubv1alpha1.PublishedResourceSpec) error {
	api, native := NativeAPI(spec.Resource)
	switch {
	case !native:
		return fmt.Errorf("spec.api.source: kcp does not serve %s by itself, so it cannot be claimed: use Schema, or name the export that provides it by spec.api.identityHash", groupResourceOf(spec.Resource))
	case spec.Projection != nil:
		return fmt.Errorf("spec.projection: kcp serves %s by itself, under its own name: with another spec.projection.group and spec.api.source Auto or Schema it gets a schema", api.GroupResource())
	case spec.Resource.Version != "" && spec.Resource.Version != api.Version:
		return fmt.Errorf("spec.resource.version: kcp serves %s in version %s only", api.GroupResource(), api.Version)
	default:
		return nil
	}
}

func validateForeignClaim(spec *synchubv1alpha1.PublishedResourceSpec) error {
	inMailbox := InMailbox(spec)
	if own, ok := servedByKCP(inMailbox); ok {
		return fmt.Errorf("spec.api.identityHash: kcp serves %s by itself, no other export does", own)
	}
	switch {
	case inMailbox.Resource == "":
		return fmt.Errorf("spec.resource.resource: required to claim what another export provides")
	case inMailbox.Version == "":
		return fmt.Errorf("spec.resource.version: required to claim what another export provides")
	default:
		return nil
	}
}

// validateOwnSchema returns an error if kcp itself serves the API. kcp would prefer the export: the existing objects of that API
// in mailboxes would become invisible permanently.
func validateOwnSchema(spec *synchubv1alpha1.PublishedResourceSpec) error {
	inMailbox := InMailbox(spec)
	served, ok := servedByKCP(inMailbox)
	if !ok {
		return nil
	}
	if _, native := NativeAPI(inMailbox); native && nameField(spec) == "spec.resource" {
		return fmt.Errorf("spec.api.source: kcp serves %s by itself, and a schema would hide the objects that mailboxes have: use Claim, or another spec.projection.group", served)
	}
	return fmt.Errorf("%s: kcp serves %s by itself: publish it under another group, by spec.projection.group", nameField(spec), served)
}

// validateWithoutSchema returns an error if the spec of a claim uses fields that need a schema from the hub.
func validateWithoutSchema(spec *synchubv1alpha1.PublishedResourceSpec) error {
	var errs []error
	if spec.InstallCRD {
		errs = append(errs, fmt.Errorf("spec.installCRD: %s is claimed, so there is no definition to install", groupResourceOf(spec.Resource)))
	}
	if spec.Deletion != nil && spec.Deletion.WaitForTarget {
		errs = append(errs, fmt.Errorf("spec.deletion.waitForTarget: %s is claimed, and the hub sets no finalizer on objects of APIs that it does not export", groupResourceOf(spec.Resource)))
	}
	return errors.Join(errs...)
}
