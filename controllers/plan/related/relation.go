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

package related

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
)

// Relation is one compiled entry of a PublishedResource's related objects. It is immutable.
type Relation struct {
	// Identifier names the entry within its PublishedResource.
	Identifier string
	// Origin is the side where the originals are.
	Origin synchubv1alpha1.RelatedOrigin

	// OnTarget is the API of the related objects on targets.
	OnTarget schema.GroupVersionResource
	// InMailbox is the same API in mailboxes. MailboxKind is its kind there; empty unless the projection contains it.
	InMailbox   schema.GroupVersionResource
	MailboxKind string
	// IdentityHash is the identity of the export that provides the API in mailboxes, if neither kcp nor the hub provides it.
	IdentityHash string

	// Naming computes the names of copies. Its templates can read .Object, .Primary, .Mailbox and .SyncTarget.
	Naming *naming.Namer
	// Down and Up mutate the objects in each direction.
	Down, Up *mutation.Program
	// StatusReturn is true if the status of a copy on the target is returned to the original in the mailbox.
	StatusReturn bool
	// Orphan is true if copies stay when their last claim ends.
	Orphan bool

	// Created is the creation time of the PublishedResource, if known. Among several relations that match one object, the
	// relation of the oldest PublishedResource counts, then of the first by name.
	Created time.Time

	objectFinder    objectFinder
	namespaceFinder *namespaceFinder
}

// SourceResource returns the API of the originals.
func (r *Relation) SourceResource() schema.GroupVersionResource {
	if r.Origin == synchubv1alpha1.RelatedOriginTarget {
		return r.OnTarget
	}
	return r.InMailbox
}

// DestinationResource returns the API of the copies.
func (r *Relation) DestinationResource() schema.GroupVersionResource {
	if r.Origin == synchubv1alpha1.RelatedOriginTarget {
		return r.InMailbox
	}
	return r.OnTarget
}

// MutatedReference returns the field in which primaries name related objects, if one of the programs mutates that field. The
// copies keep the names of the originals, so the primary would not name them on the other side. It returns "" if no program
// mutates the field, or if naming templates rename the copies.
func (r *Relation) MutatedReference(programs ...*mutation.Program) string {
	reference := r.objectFinder.reference
	if reference == nil {
		return ""
	}
	var fields []fieldpath.Path
	if !r.Naming.HasNameTemplate() {
		fields = append(fields, reference.path.Child(reference.nameField))
	}
	if reference.namespaceField != "" && !r.Naming.HasNamespaceTemplate() {
		fields = append(fields, reference.path.Child(reference.namespaceField))
	}
	for _, field := range fields {
		if slices.ContainsFunc(programs, func(program *mutation.Program) bool { return program.MayChange(field) }) {
			return field.String()
		}
	}
	return ""
}

// NamingUsesPrimary reports whether the names of copies depend on the primary.
func (r *Relation) NamingUsesPrimary() bool { return r.Naming.Uses("Primary") }

// SelectsNamespaces reports whether the labels of namespaces decide which objects are related.
func (r *Relation) SelectsNamespaces() bool {
	return r.namespaceFinder != nil && r.namespaceFinder.selector != nil
}
