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

package transform

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Up transforms objects of one target into mailbox objects of one resource.
type Up struct {
	// Owner is the owner in the marks.
	Owner ownership.Owner
	// Mailbox is the logical cluster of the mailbox, and SyncTarget the name of the target's SyncTarget.
	Mailbox, SyncTarget string
	// Resource, Version and Kind are the API in the mailbox.
	Resource      schema.GroupResource
	Version, Kind string
	// Namespaced is false if the mailbox objects are cluster-scoped.
	Namespaced bool
	// Pruner drops the fields that the mailbox's schema does not have; nil if the schema is unknown.
	Pruner *Pruner
	// Hasher computes the hash in the mark.
	Hasher ownership.Hasher
	// KeepsSettings is true if the annotations with which users change how the hub syncs an object travel with it: for copies that
	// placements make.
	KeepsSettings bool
	// RecordsOwners is true if [OwnersAnnotation] records the owners of the target object.
	RecordsOwners bool
}

// Name returns the name and kind of a target object in the mailbox.
func (u Up) Name(target *unstructured.Unstructured, spec SyncSpec) (conversion.Name, error) {
	kind := schema.GroupVersionKind{Group: u.Resource.Group, Version: u.Version, Kind: u.Kind}
	name := conversionName(target)
	if spec.Conversion != nil {
		// The conversion may name another version of the API: objects are the same in all versions.
		name.GVK.Version = cmp.Or(spec.Conversion.Downstream.Version, name.GVK.Version)
		converted, ok := spec.Conversion.Up(name)
		if !ok || converted.GVK.GroupKind() != kind.GroupKind() {
			return conversion.Name{}, fmt.Errorf("the conversion from %v to %v does not make a %s of %v", spec.Conversion.Upstream, spec.Conversion.Downstream, kind.GroupKind(), name)
		}
		name = converted
	}
	// The hub writes to the mailbox in one version, even if the conversion names another one.
	name.GVK = kind
	if spec.Conversion != nil {
		return name, nil
	}
	return spec.applyNaming(target, u.Mailbox, u.SyncTarget, name, u.Namespaced)
}

// Desired returns the object, without its status, that the mailbox must have. The error is a [*TooLargeError], a
// [*InvalidObjectError] or a [*mutation.Error] if the object cannot be synced.
func (u Up) Desired(target *unstructured.Unstructured, resource schema.GroupResource, spec SyncSpec) (*Desired, error) {
	name, err := u.Name(target, spec)
	if err != nil {
		return nil, err
	}
	content, err := spec.contentOf(target, name, func(annotation string) bool {
		return shouldUpsyncAnnotation(annotation) || u.KeepsSettings && settingAnnotations[annotation]
	})
	if err != nil {
		return nil, err
	}
	spec.Workspace.setOn(content)
	if u.RecordsOwners {
		recordOwners(content, target)
	}
	// Both kinds count: if the mailbox object were a token Secret, kcp would add a token of the mailbox.
	if isTokenSecret(target.Object) || isTokenSecret(content) {
		return nil, &InvalidObjectError{
			Field:   "type",
			Message: "the token of a ServiceAccount is of use on its own cluster only: leave this Secret out of upsync",
		}
	}
	if err := adaptForOtherCluster(content); err != nil {
		return nil, err
	}
	// Fields that kcp would drop are neither written nor compared, since they would always be missing.
	content, dropped := u.Pruner.Prune(content)
	desired, err := seal(content, ownership.Mark{
		Direction: ownership.DirectionUp,
		Mailbox:   u.Mailbox,
		Source:    sourceOf(target, resource),
		Policy:    spec.Policy,
		Relation:  spec.Relation,
	}, u.Owner, u.Hasher)
	if err != nil {
		return nil, err
	}
	desired.PrunedPaths = dropped
	return desired, nil
}
