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
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// Reasons of the conditions Exported and Ready.
const (
	// ReasonExported and ReasonReady are the reasons of conditions that are True.
	ReasonExported = "Exported"
	ReasonReady    = "Ready"
	// ReasonInvalid: the user must change a field of the PublishedResource, or the CRD.
	ReasonInvalid = "Invalid"
	// ReasonSchemaMissing: there is no schema; the condition SchemaReady contains the reason.
	ReasonSchemaMissing = "SchemaMissing"
	// ReasonDuplicate: an older PublishedResource publishes the same API.
	ReasonDuplicate = "Duplicate"
	// ReasonConflict: the entry contradicts an entry that the export already has.
	ReasonConflict = "Conflict"
	// ReasonRefused: kcp refuses the entry in the export, or in the workload export.
	ReasonRefused = "Refused"
	// ReasonNotServed: the export claims the API, but mailboxes do not serve it.
	ReasonNotServed = "NotServed"
	// ReasonRelatedNotPublished: mailboxes do not serve the related API, or the hub does not sync its objects.
	ReasonRelatedNotPublished = "RelatedNotPublished"
	// ReasonRelatedInvalid: an entry of spec.related cannot work with the API it names.
	ReasonRelatedInvalid = "RelatedInvalid"
	// ReasonNamingMissing: a mutation changes the names of related objects, but no naming changes the names of
	// their copies accordingly.
	ReasonNamingMissing = "NamingMissing"
)

// problem is a reason and a message for a condition.
type problem struct{ reason, message string }

// resourcePlan is the plan for one PublishedResource.
type resourcePlan struct {
	published *synchubv1alpha1.PublishedResource
	// group is the name of the API in mailboxes; zero while unknown.
	groupResource schema.GroupResource
	// entry is the entry that the export must have, or nil.
	entry *exportEntry
	// api is the API that mailboxes have, or nil while unknown.
	api *publishedresource.API
	// synced is the resource to sync, or nil if the objects must not be synced.
	synced *plan.Resource
	// compiledFrom is the PublishedResource that synced was compiled from: an older state of published, while the schema for a
	// changed spec is being made.
	compiledFrom *synchubv1alpha1.PublishedResource
	// notExported is why mailboxes do not have the API from this PublishedResource. problem is any other problem. Both may
	// be nil.
	notExported, problem *problem
	// discoveryFailed is true if the only problem is that discovery in mailboxes failed.
	discoveryFailed bool
	// notPlaceable is why workload workspaces lack an API of this PublishedResource. isMirrorKnown is false if the update of
	// the workload export failed, so that it is unknown which APIs kcp accepts there.
	notPlaceable  []string
	isMirrorKnown bool
}

func newResourcePlan(resource *synchubv1alpha1.PublishedResource) *resourcePlan {
	c := &resourcePlan{published: resource}
	mailboxResource := publishedresource.InMailbox(&resource.Spec)
	if native, ok := publishedresource.NativeAPI(mailboxResource); ok {
		c.groupResource = native.GroupResource()
	} else if mailboxResource.Resource != "" {
		c.groupResource = schema.GroupResource{Group: mailboxResource.Group, Resource: mailboxResource.Resource}
	}
	return c
}

// isNamed reports whether the name of the API in mailboxes is known.
func (c *resourcePlan) isNamed() bool { return c.groupResource != schema.GroupResource{} }

// setNotExported records why mailboxes do not get the API from this PublishedResource.
func (c *resourcePlan) setNotExported(reason, format string, args ...any) {
	c.notExported = &problem{reason, fmt.Sprintf(format, args...)}
	c.entry, c.synced = nil, nil
}

// setProblem records a problem with an API that mailboxes do have. The first problem wins.
func (c *resourcePlan) setProblem(reason, format string, args ...any) {
	if c.problem == nil {
		c.problem = &problem{reason, fmt.Sprintf(format, args...)}
	}
}

// setInvalid records that the user must change the PublishedResource before the hub syncs its objects.
func (c *resourcePlan) setInvalid(err error) {
	c.setProblem(ReasonInvalid, "%s. Its objects are left as they are until this is fixed.", inOneLine(err))
}

func inOneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// isActive reports whether the hub syncs objects by this PublishedResource.
func (c *resourcePlan) isActive() bool { return c.notExported == nil && c.synced != nil }

// conditions returns the conditions Exported and Ready.
func (c *resourcePlan) conditions() (exported, ready metav1.Condition) {
	exported = metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonExported, Message: fmt.Sprintf("Mailboxes have %s.", c.groupResource)}
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

// setMutatedReferenceCondition sets or removes the condition MutatedReference: relations look up objects by a field that a
// mutation of the primary changes.
func (c *resourcePlan) setMutatedReferenceCondition(all *[]metav1.Condition) {
	var missed []string
	if c.synced != nil && c.synced.Rules != nil {
		for i, related := range c.synced.Related() {
			if field := related.MutatedReference(c.synced.Rules.Down, c.synced.Rules.Up); field != "" {
				missed = append(missed, fmt.Sprintf("spec.related[%d] (%s) by %s", i, related.Identifier, field))
			}
		}
	}
	status.SetConditionIf(len(missed) > 0, all, metav1.Condition{
		Type: synchubv1alpha1.ConditionMutatedReference, Reason: ReasonNamingMissing, ObservedGeneration: c.published.Generation,
		Message: fmt.Sprintf("Objects are found by a field that spec.mutation changes, and their copies keep their names, so the primary names different objects in the mailbox and on the cluster: %s. "+
			"Give these entries a naming that makes the same names.", strings.Join(missed, "; ")),
	})
}

// setNotPlaceableCondition sets or removes the condition NotPlaceable. It leaves the condition alone while the hub does not know.
func (c *resourcePlan) setNotPlaceableCondition(all *[]metav1.Condition) {
	if !c.isMirrorKnown {
		return
	}
	status.SetConditionIf(len(c.notPlaceable) > 0, all, metav1.Condition{
		Type: synchubv1alpha1.ConditionNotPlaceable, Reason: ReasonRefused, ObservedGeneration: c.published.Generation,
		Message: status.Truncate(strings.Join(c.notPlaceable, "; ")),
	})
}

// isReportedElsewhere reports whether the condition SchemaReady already reports the same, so that one event is enough.
func (c *resourcePlan) isReportedElsewhere(ready metav1.Condition) bool {
	other := c.schemaReadyCondition()
	return ready.Reason == ReasonSchemaMissing || other != nil && other.Status == ready.Status && other.Reason == ready.Reason
}

// schemaReadyCondition returns the condition SchemaReady, or nil if the condition is about an older generation of the spec.
func (c *resourcePlan) schemaReadyCondition() *metav1.Condition {
	condition := meta.FindStatusCondition(c.published.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
	if condition == nil || condition.ObservedGeneration != c.published.Generation {
		return nil
	}
	return condition
}
