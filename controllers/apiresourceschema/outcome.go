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

package apiresourceschema

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// Reasons of the condition SchemaReady.
const (
	// ReasonClaimed and ReasonCreated are the reasons if the condition is True.
	ReasonClaimed = "Claimed"
	ReasonCreated = "Created"
	// ReasonInvalid: the user must change the PublishedResource or the CRD.
	ReasonInvalid = "Invalid"
	// ReasonSchemaTooLarge: the CRD exceeds a limit, so the hub makes no schema from it.
	ReasonSchemaTooLarge = "SchemaTooLarge"
	// ReasonSchemaMissing: the ConfigMap or the SyncTarget in spec.api.schemaFrom does not exist.
	ReasonSchemaMissing = "SchemaMissing"
	// ReasonSourceUnreachable: the source cluster does not answer.
	ReasonSourceUnreachable = "SourceUnreachable"
	// ReasonForbidden: the source cluster does not let the hub read the CRD.
	ReasonForbidden = "Forbidden"
	// ReasonNotServed: the source cluster does not serve the resource.
	ReasonNotServed = "NotServed"
)

// ReasonSchemaChanged is the reason of the event that a new schema replaces another.
const ReasonSchemaChanged = "SchemaChanged"

// problem is an error with a reason for the condition SchemaReady: there is no schema, or it may be out of date.
type problem struct {
	reason string
	err    error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// invalidProblem returns the problem for a CRD that no schema can be made from.
func invalidProblem(err error) error {
	if _, tooLarge := errors.AsType[*structural.TooLargeError](err); tooLarge {
		return &problem{ReasonSchemaTooLarge, err}
	}
	return &problem{ReasonInvalid, err}
}

// sourceProblem returns the problem for a CRD that could not be read. field is the field of the PublishedResource that
// names the cluster.
func sourceProblem(field, cluster string, err error) *problem {
	var unusable *discovery.UnusableError
	var tooLarge *structural.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return &problem{ReasonSchemaTooLarge, fmt.Errorf("spec.resource: mailboxes cannot serve the definition of %s: %w", cluster, tooLarge)}
	case errors.As(err, &unusable):
		return &problem{ReasonInvalid, fmt.Errorf("spec.resource: mailboxes cannot serve the definition of %s: %w", cluster, unusable)}
	case errors.Is(err, discovery.ErrNotServed):
		return &problem{ReasonNotServed, fmt.Errorf("spec.resource: %s does not serve it", cluster)}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &problem{ReasonForbidden, fmt.Errorf("%s: %s does not let the hub read the definition: %s", field, cluster, serverMessage(err))}
	default:
		return &problem{ReasonSourceUnreachable, fmt.Errorf("%s: the definition cannot be read from %s: %s", field, cluster, serverMessage(err))}
	}
}

// serverMessage returns the message of the server, or why the request failed. It leaves out addresses, which may differ
// with each try.
func serverMessage(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return requestmetrics.SafeMessage(err)
}

// outcome is the result of reconciling the schema of a PublishedResource.
type outcome struct {
	// schema is the name of the schema; empty for a claim.
	schema string
	// notes is the number of parts of the CRD that the schema cannot express.
	notes int
	// problem is why the schema is missing or may be out of date; nil if neither.
	problem *problem
	// targetUnobserved is true if the cause may be that this hub has not observed the SyncTarget or its target yet.
	targetUnobserved bool
	// requeueAfter is when to reconcile again without an event; zero for never.
	requeueAfter time.Duration
}

// isReported reports whether the condition SchemaReady is about the current generation.
func isReported(resource *synchubv1alpha1.PublishedResource) bool {
	ready := meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
	return ready != nil && ready.ObservedGeneration == resource.Generation
}

// updateStatus sets the condition SchemaReady. On a problem status.schemaName stays as it is.
func (o outcome) updateStatus(resource *synchubv1alpha1.PublishedResource) {
	condition := metav1.Condition{Type: synchubv1alpha1.ConditionSchemaReady, Status: metav1.ConditionTrue, ObservedGeneration: resource.Generation}
	switch {
	case o.problem != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, o.problem.reason, strings.ReplaceAll(o.problem.Error(), "\n", "; ")
		if in := resource.Status.SchemaName; in != "" {
			condition.Message += fmt.Sprintf(". The schema %s stays in force.", in)
		}
	case o.schema == "":
		condition.Reason, condition.Message = ReasonClaimed, "Mailboxes do not have the API from the hub; their objects are claimed."
	default:
		condition.Reason, condition.Message = ReasonCreated, fmt.Sprintf("The APIResourceSchema is %s.", o.schema)
		if o.notes > 0 {
			condition.Message += fmt.Sprintf(" It cannot express all of the definition: see its annotation %s (%d).", schemas.NotesAnnotation, o.notes)
		}
	}
	if o.problem == nil {
		resource.Status.SchemaName = o.schema
	}
	meta.SetStatusCondition(&resource.Status.Conditions, condition)
}
