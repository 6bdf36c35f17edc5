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
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
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

// problem is why something is not as it should be.
type problem struct{ reason, message string }

// resourcePlan is a PublishedResource on its way into force.
type resourcePlan struct {
	published *synchubv1alpha1.PublishedResource
	// group is what mailboxes call it; zero while that is unknown.
	group schema.GroupResource
	// entry is what the export must carry for it, nil for nothing.
	entry *exportEntry
	// api is what mailboxes have, nil while that is unknown.
	api *publishedresource.API
	// synced is how its objects are to be synced, nil for not at all.
	synced *objectsync.Resource
	// notExported is why mailboxes do not have the API from it, flaw what else is wrong; nil for nothing.
	notExported, problem *problem
	// discoveryFailed is true if the flaw is only that nobody can tell now what mailboxes serve.
	discoveryFailed bool
}

func newResourcePlan(resource *synchubv1alpha1.PublishedResource) *resourcePlan {
	c := &resourcePlan{published: resource}
	mailboxResource := publishedresource.InMailbox(&resource.Spec)
	if native, ok := publishedresource.NativeAPI(mailboxResource); ok {
		c.group = native.GroupResource()
	} else if mailboxResource.Resource != "" {
		c.group = schema.GroupResource{Group: mailboxResource.Group, Resource: mailboxResource.Resource}
	}
	return c
}

// isNamed tells whether it is known what mailboxes call it.
func (c *resourcePlan) isNamed() bool { return c.group != schema.GroupResource{} }

// setNotExported says why mailboxes do not get the API from it.
func (c *resourcePlan) setNotExported(reason, format string, args ...any) {
	c.notExported = &problem{reason, fmt.Sprintf(format, args...)}
	c.entry, c.synced = nil, nil
}

// setProblem says what is wrong although mailboxes have the API. The first that is wrong counts.
func (c *resourcePlan) setProblem(reason, format string, args ...any) {
	if c.problem == nil {
		c.problem = &problem{reason, fmt.Sprintf(format, args...)}
	}
}

// setInvalid says that the PublishedResource must be changed before its objects are synced.
func (c *resourcePlan) setInvalid(err error) {
	c.setProblem(ReasonInvalid, "%s. Its objects are left as they are until this is mended.", inOneLine(err))
}

func inOneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// isInForce tells whether objects are synced by it.
func (c *resourcePlan) isInForce() bool { return c.notExported == nil && c.synced != nil }

// conditions are what there is to say.
func (c *resourcePlan) conditions() (exported, ready metav1.Condition) {
	exported = metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonExported, Message: fmt.Sprintf("Mailboxes have %s.", c.group)}
	ready = metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonReady, Message: "The API is published."}
	if c.notExported != nil {
		exported.Status, exported.Reason, exported.Message = metav1.ConditionFalse, c.notExported.reason, c.notExported.message
	}
	if wrong := cmp.Or(c.notExported, c.problem); wrong != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, wrong.reason, wrong.message
	}
	exported.Type, ready.Type = synchubv1alpha1.ConditionExported, synchubv1alpha1.ConditionReady
	exported.ObservedGeneration, ready.ObservedGeneration = c.published.Generation, c.published.Generation
	return exported, ready
}

// mutatedReferenceCondition returns the condition that warns of relations whose objects a mutation of the primary misses; ok is false if
// there are none.
func (c *resourcePlan) mutatedReferenceCondition() (condition metav1.Condition, ok bool) {
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

// isReportedElsewhere tells whether the condition SchemaReady says the same, so that one event is enough.
func (c *resourcePlan) isReportedElsewhere(ready metav1.Condition) bool {
	other := c.schemaReadyCondition()
	return ready.Reason == ReasonSchemaMissing || other != nil && other.Status == ready.Status && other.Reason == ready.Reason
}

// schemaReadyCondition returns the condition, nil if it does not speak of the spec as it is now.
func (c *resourcePlan) schemaReadyCondition() *metav1.Condition {
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
