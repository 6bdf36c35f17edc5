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
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// Up turns objects of one target into the mailbox objects of one resource.
type Up struct {
	// Owner marks what is made.
	Owner ownership.Owner
	// Mailbox is the name of the logical cluster that the objects are made for, SyncTarget that of the target's SyncTarget.
	Mailbox, SyncTarget string
	// Resource, Version and Kind are those that the objects have in the mailbox.
	Resource      schema.GroupResource
	Version, Kind string
	// Namespaced is false if they are cluster-scoped there.
	Namespaced bool
	// Pruner is what the mailbox's schema keeps, nil if it is not known.
	Pruner *Pruner
	// Hasher makes the hash in the mark.
	Hasher ownership.Hasher
}

// Name returns what an object of the target is called in the mailbox.
func (u Up) Name(target *unstructured.Unstructured, wish SyncSpec) (conversion.Name, error) {
	kind := schema.GroupVersionKind{Group: u.Resource.Group, Version: u.Version, Kind: u.Kind}
	name := conversionName(target)
	if wish.Conversion != nil {
		// It was chosen by a version of the API, and the object is the same in all.
		name.GVK.Version = cmp.Or(wish.Conversion.Downstream.Version, name.GVK.Version)
		converted, ok := wish.Conversion.Up(name)
		if !ok || converted.GVK.GroupKind() != kind.GroupKind() {
			return conversion.Name{}, fmt.Errorf("the conversion from %v to %v does not make a %s of %v", wish.Conversion.Upstream, wish.Conversion.Downstream, kind.GroupKind(), name)
		}
		name = converted
	}
	// Whatever the conversion knows of versions: the mailbox is written in one.
	name.GVK = kind
	if wish.Conversion != nil {
		return name, nil
	}
	key, err := wish.applyNaming(target, u.Mailbox, u.SyncTarget, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, u.Namespaced, kind.GroupKind())
	if err != nil {
		return conversion.Name{}, err
	}
	name.Namespace, name.Name = key.Namespace, key.Name
	return name, nil
}

// Desired returns the object, without its status, that the mailbox must hold for one of the target's resource. The error is
// a [*TooLargeError], a [*InvalidObjectError] or a [*mutation.Error] if the object cannot travel as it is.
func (u Up) Desired(target *unstructured.Unstructured, resource schema.GroupResource, wish SyncSpec) (*Desired, error) {
	name, err := u.Name(target, wish)
	if err != nil {
		return nil, err
	}
	content := sanitize(target, shouldUpsyncAnnotation)
	if err := rename(content, name); err != nil {
		return nil, err
	}
	if err := wish.mutate(content); err != nil {
		return nil, err
	}
	// Whatever it is there: kcp would fill in a token of the mailbox.
	if isTokenSecret(target.Object) || isTokenSecret(content) {
		return nil, &InvalidObjectError{
			Reason: ReasonInvalid, Field: "type",
			Message: "the token of a ServiceAccount is of use on its own cluster only: leave this Secret out of upsync",
		}
	}
	if err := adaptForOtherCluster(content); err != nil {
		return nil, err
	}
	// What kcp would drop is neither written nor compared: it would be missing for ever.
	content, dropped := u.Pruner.Prune(content)
	desired, err := seal(content, ownership.Mark{
		Direction: ownership.DirectionUp,
		Mailbox:   u.Mailbox,
		Source: ownership.Source{
			Group:     resource.Group,
			Resource:  resource.Resource,
			Namespace: target.GetNamespace(),
			Name:      target.GetName(),
			UID:       target.GetUID(),
		},
		Policy:   wish.Policy,
		Relation: wish.Relation,
	}, u.Owner, u.Hasher)
	if err != nil {
		return nil, err
	}
	desired.DroppedPaths = dropped
	return desired, nil
}

// MutatedStatus returns the status, which may be nil, that an object of the target has on its way up, after the mutation. Like
// what it is made of it must not be changed.
func MutatedStatus(target, held *unstructured.Unstructured, program *mutation.Program) (any, error) {
	if program == nil || target.Object["status"] == nil {
		return target.Object["status"], nil
	}
	changed := target.DeepCopy()
	if err := program.Run(changed.Object, held.Object); err != nil {
		return nil, err
	}
	return changed.Object["status"], nil
}
