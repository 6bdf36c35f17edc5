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
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/sync"
)

// Reasons of the conditions Exported and Ready.
const (
	// ReasonExported and ReasonReady are those of success.
	ReasonExported = "Exported"
	ReasonReady    = "Ready"
	// ReasonInvalid: a field of the PublishedResource, or its definition, must be changed.
	ReasonInvalid = "Invalid"
	// ReasonSchemaMissing: there is no schema; the condition SchemaReady says why.
	ReasonSchemaMissing = "SchemaMissing"
	// ReasonDuplicate: an older PublishedResource gives mailboxes the same API.
	ReasonDuplicate = "Duplicate"
	// ReasonConflict: the export has something that excludes it.
	ReasonConflict = "Conflict"
	// ReasonRefused: kcp refuses it.
	ReasonRefused = "Refused"
	// ReasonNotServed: it is claimed, but mailboxes do not have it.
	ReasonNotServed = "NotServed"
	// ReasonRelatedNotPublished: mailboxes do not have what is related, or its objects are not synced.
	ReasonRelatedNotPublished = "RelatedNotPublished"
	// ReasonRelatedInvalid: an entry of spec.related cannot work with the API it names.
	ReasonRelatedInvalid = "RelatedInvalid"
	// ReasonNamingMissing: a mutation changes the names of what is related, and no naming gives the copies the same.
	ReasonNamingMissing = "NamingMissing"
)

// finding is why something is not as it should be.
type finding struct{ reason, message string }

// candidate is a PublishedResource on its way into force.
type candidate struct {
	published *synchubv1alpha1.PublishedResource
	// group is what mailboxes call it; zero while that is unknown.
	group schema.GroupResource
	// entry is what the export must carry for it, nil for nothing.
	entry *entry
	// api is what mailboxes have, nil while that is unknown.
	api *published.API
	// synced is how its objects are to be synced, nil for not at all.
	synced *sync.Resource
	// absent is why mailboxes do not have the API from it, flaw what else is wrong; nil for nothing.
	absent, flaw *finding
	// unknown is true if the flaw is only that nobody can tell now what mailboxes serve.
	unknown bool
}

func newCandidate(resource *synchubv1alpha1.PublishedResource) *candidate {
	c := &candidate{published: resource}
	there := published.InMailbox(&resource.Spec)
	if native, ok := published.NativeAPI(there); ok {
		c.group = native.GroupResource()
	} else if there.Resource != "" {
		c.group = schema.GroupResource{Group: there.Group, Resource: there.Resource}
	}
	return c
}

// named tells whether it is known what mailboxes call it.
func (c *candidate) named() bool { return c.group != schema.GroupResource{} }

// keepOut says why mailboxes do not get the API from it.
func (c *candidate) keepOut(reason, format string, args ...any) {
	c.absent = &finding{reason, fmt.Sprintf(format, args...)}
	c.entry, c.synced = nil, nil
}

// fault says what is wrong although mailboxes have the API. The first that is wrong counts.
func (c *candidate) fault(reason, format string, args ...any) {
	if c.flaw == nil {
		c.flaw = &finding{reason, fmt.Sprintf(format, args...)}
	}
}

// invalid says that the PublishedResource must be changed before its objects are synced.
func (c *candidate) invalid(err error) {
	c.fault(ReasonInvalid, "%s. Its objects are left as they are until this is mended.", inOneLine(err))
}

func inOneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// inForce tells whether objects are synced by it.
func (c *candidate) inForce() bool { return c.absent == nil && c.synced != nil }

// conditions are what there is to say.
func (c *candidate) conditions() (exported, ready metav1.Condition) {
	exported = metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonExported, Message: fmt.Sprintf("Mailboxes have %s.", c.group)}
	ready = metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonReady, Message: "The API is published."}
	if c.absent != nil {
		exported.Status, exported.Reason, exported.Message = metav1.ConditionFalse, c.absent.reason, c.absent.message
	}
	if wrong := cmp.Or(c.absent, c.flaw); wrong != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, wrong.reason, wrong.message
	}
	exported.Type, ready.Type = synchubv1alpha1.ConditionExported, synchubv1alpha1.ConditionReady
	exported.ObservedGeneration, ready.ObservedGeneration = c.published.Generation, c.published.Generation
	return exported, ready
}

// mutatedReference returns the condition that warns of relations whose objects a mutation of the primary misses; ok is false if
// there are none.
func (c *candidate) mutatedReference() (condition metav1.Condition, ok bool) {
	if c.synced == nil || c.synced.Rules == nil {
		return condition, false
	}
	var missed []string
	for i, related := range c.synced.Related() {
		if field := related.MutatedReference(c.synced.Rules.Down, c.synced.Rules.Up); field != "" {
			missed = append(missed, fmt.Sprintf("spec.related[%d] (%s) by %s", i, related.Identifier, field))
		}
	}
	return metav1.Condition{
		Type: synchubv1alpha1.ConditionMutatedReference, Status: metav1.ConditionTrue, Reason: ReasonNamingMissing, ObservedGeneration: c.published.Generation,
		Message: fmt.Sprintf("Objects are found by a field that spec.mutation changes, and their copies keep their names, so the primary names other objects on its other side: %s. "+
			"Give these entries a naming that makes the same names.", strings.Join(missed, "; ")),
	}, len(missed) > 0
}

// isTold tells whether the condition SchemaReady says the same, so that one event is enough.
func (c *candidate) isTold(ready metav1.Condition) bool {
	other := c.schemaReady()
	return ready.Reason == ReasonSchemaMissing || other != nil && other.Status == ready.Status && other.Reason == ready.Reason
}

// schemaReady returns the condition, nil if it does not speak of the spec as it is now.
func (c *candidate) schemaReady() *metav1.Condition {
	condition := meta.FindStatusCondition(c.published.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
	if condition == nil || condition.ObservedGeneration != c.published.Generation {
		return nil
	}
	return condition
}

// oldestFirst orders PublishedResources by their age, and those that are as old by their names.
func oldestFirst(a, b synchubv1alpha1.PublishedResource) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}
