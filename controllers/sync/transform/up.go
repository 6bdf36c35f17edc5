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
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/sync/conversion"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

// Up turns objects of one target into the mailbox objects of one resource.
type Up struct {
	// Owner marks what is made.
	Owner ownership.Owner
	// Mailbox is the name of the logical cluster that the objects are made for.
	Mailbox string
	// Resource, Version and Kind are those that the objects have in the mailbox.
	Resource      schema.GroupResource
	Version, Kind string
	// Hasher makes the hash in the mark.
	Hasher ownership.Hasher
}

// Desire returns the object, without its status, that the mailbox must hold for one of the target's resource. A nil
// conversion leaves the name as it is. The error is a [*TooLargeError] or a [*RefusedError] if the object cannot travel
// as it is.
func (u Up) Desire(target *unstructured.Unstructured, resource schema.GroupResource, policy ownership.Policy, names *conversion.Conversion) (*Desired, error) {
	name := nameOf(target)
	kind := schema.GroupVersionKind{Group: u.Resource.Group, Version: u.Version, Kind: u.Kind}
	if names != nil {
		converted, ok := names.Up(name)
		if !ok || converted.GVK.GroupKind() != kind.GroupKind() {
			return nil, fmt.Errorf("the conversion from %v to %v does not make a %s of %v", names.Upstream, names.Downstream, kind.GroupKind(), name)
		}
		name = converted
	}
	if isTokenSecret(target.Object) {
		return nil, &RefusedError{
			Reason: ReasonInvalid, Field: "type",
			Message: "the token of a ServiceAccount is of use on its own cluster only: leave this Secret out of upsync",
		}
	}
	// Whatever the conversion knows of versions: the mailbox is written in one.
	name.GVK = kind
	content := sanitize(target, goesUp)
	if err := rename(content, name); err != nil {
		return nil, err
	}
	if err := adapt(content); err != nil {
		return nil, err
	}
	return seal(content, ownership.Mark{
		Direction: ownership.DirectionUp,
		Mailbox:   u.Mailbox,
		Source: ownership.Source{
			Group:     resource.Group,
			Resource:  resource.Resource,
			Namespace: target.GetNamespace(),
			Name:      target.GetName(),
			UID:       target.GetUID(),
		},
		Policy: policy,
	}, u.Owner, u.Hasher)
}
