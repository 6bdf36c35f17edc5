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

// Down turns mailbox objects of one resource into the objects of one target.
type Down struct {
	// Owner marks what is made.
	Owner ownership.Owner
	// Mailbox is the name of the logical cluster that the sources live in.
	Mailbox string
	// Resource is the resource of the sources.
	Resource schema.GroupResource
	// Hasher makes the hash in the mark.
	Hasher ownership.Hasher
}

// Desire returns the object that the target must hold for source. A nil conversion leaves names as they are. The error
// is a [*TooLargeError] or a [*RefusedError] if the object cannot travel as it is.
func (d Down) Desire(source *unstructured.Unstructured, policy ownership.Policy, names *conversion.Conversion) (*Desired, error) {
	if source.GetAnnotations()[ownership.OverwriteAnnotation] == "false" {
		policy = ownership.PolicyCreateOnly
	}
	content := sanitize(source, goesDown)
	if names != nil {
		name, ok := names.Down(nameOf(source))
		if !ok {
			return nil, fmt.Errorf("the conversion from %v to %v does not speak of %v", names.Upstream, names.Downstream, nameOf(source))
		}
		if err := rename(content, name); err != nil {
			return nil, err
		}
	}
	if err := adapt(content); err != nil {
		return nil, err
	}
	return seal(content, ownership.Mark{
		Mailbox: d.Mailbox,
		Source: ownership.Source{
			Group:     d.Resource.Group,
			Resource:  d.Resource.Resource,
			Namespace: source.GetNamespace(),
			Name:      source.GetName(),
			UID:       source.GetUID(),
		},
		Policy: policy,
	}, d.Owner, d.Hasher)
}
