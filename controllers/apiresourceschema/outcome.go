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

	"github.com/synchub-dev/synchub/apis/schemas"
	"github.com/synchub-dev/synchub/apis/schemas/structural"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// Reasons of the condition SchemaReady.
const (
	// ReasonClaimed and ReasonCreated are those of success.
	ReasonClaimed = "Claimed"
	ReasonCreated = "Created"
	// ReasonInvalid: the PublishedResource or the definition must be changed.
	ReasonInvalid = "Invalid"
	// ReasonSchemaTooLarge: the definition is beyond a limit, so that no schema is made of it.
	ReasonSchemaTooLarge = "SchemaTooLarge"
	// ReasonSchemaMissing: the ConfigMap or the SyncTarget that is named does not exist.
	ReasonSchemaMissing = "SchemaMissing"
	// ReasonSourceUnreachable: the cluster that is named cannot be asked now.
	ReasonSourceUnreachable = "SourceUnreachable"
	// ReasonForbidden: the cluster that is named does not let the hub read the definition.
	ReasonForbidden = "Forbidden"
	// ReasonNotServed: the cluster that is named does not serve the resource.
	ReasonNotServed = "NotServed"
)

// ReasonSchemaChanged is the reason of an event.
const ReasonSchemaChanged = "SchemaChanged"

// problem is why there is no schema, or none that is known to be up to date, for the condition.
type problem struct {
	reason string
	err    error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// invalidProblem tells what it means that no schema can be made of a definition.
func invalidProblem(err error) error {
	if _, tooLarge := errors.AsType[*structural.TooLargeError](err); tooLarge {
		return &problem{ReasonSchemaTooLarge, err}
	}
	return &problem{ReasonInvalid, err}
}

// sourceProblem tells what it means that the definition could not be read from a cluster, which is called as the field
// of the PublishedResource says.
func sourceProblem(field, cluster string, err error) *problem {
	var unusable *discovery.UnusableError
	var tooLarge *structural.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return &problem{ReasonSchemaTooLarge, fmt.Errorf("spec.resource: mailboxes cannot have what %s serves: %w", cluster, tooLarge)}
	case errors.As(err, &unusable):
		return &problem{ReasonInvalid, fmt.Errorf("spec.resource: mailboxes cannot have what %s serves: %w", cluster, unusable)}
	case errors.Is(err, discovery.ErrNotServed):
		return &problem{ReasonNotServed, fmt.Errorf("spec.resource: %s does not serve it", cluster)}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &problem{ReasonForbidden, fmt.Errorf("%s: %s does not let the hub read the definition: %s", field, cluster, serverMessage(err))}
	default:
		return &problem{ReasonSourceUnreachable, fmt.Errorf("%s: %s cannot be asked for the definition: %s", field, cluster, serverMessage(err))}
	}
}

// serverMessage is what a server said, or why the request did not get there. It names no address, of which a part may change with
// each try.
func serverMessage(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return requestmetrics.SafeMessage(err)
}

// outcome is what there is to say about the schema of a PublishedResource.
type outcome struct {
	// schema is the name of the schema; empty for a claim.
	schema string
	// notes is how many parts of the definition the schema cannot express.
	notes int
	// problem is why nothing is known about the schema, nil if all is well.
	problem *problem
	// targetUnobserved is true if the problem may only be that this hub has not found the SyncTarget, or its target, yet.
	targetUnobserved bool
	// requeueAfter is when to look again, if nothing happens before.
	requeueAfter time.Duration
}

// isReported tells whether the condition speaks of the spec as it is.
func isReported(resource *synchubv1alpha1.PublishedResource) bool {
	ready := meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
	return ready != nil && ready.ObservedGeneration == resource.Generation
}

// updateStatus puts the outcome into the status. What cannot be known now takes nothing away.
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
