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

package objectsync

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// Bounds of the texts of a difference in bytes.
const (
	maxDriftPath    = 128
	maxDriftValue   = 64
	maxDriftManager = 64
	// maxDriftManagers bounds the managers of a field.
	maxDriftManagers = 3
)

// driftReport is how a copy differs from the desired object. It is immutable.
type driftReport struct {
	// state identifies the state of the copy that was compared.
	state string
	// err is nil if no value differs: another client has set the desired values.
	err *driftedError
}

// asError returns the error of a pass that found the differences, or nil.
func (r *driftReport) asError() error {
	if r == nil || r.err == nil {
		return nil
	}
	return r.err
}

// driftedError means that an object of the target differs from the desired one, and that the hub only reports that.
type driftedError struct {
	// first are the first differences, as a status shows them, and total is the number of all.
	first []edgev2alpha1.FieldDifference
	total int
	// taken is set if the object is not the hub's copy, but may be adopted.
	taken *nameTakenError
}

// newDriftedError returns the error for differences. Their values are left out if hidesValues is true.
func newDriftedError(differences []transform.Difference, hidesValues bool) *driftedError {
	drifted := &driftedError{total: len(differences)}
	for _, difference := range differences[:min(len(differences), edgev2alpha1.MaxDifferences)] {
		shown := edgev2alpha1.FieldDifference{Path: redact.Truncate(difference.Path, maxDriftPath)}
		for _, manager := range difference.Managers[:min(len(difference.Managers), maxDriftManagers)] {
			shown.Managers = append(shown.Managers, redact.Truncate(manager, maxDriftManager))
		}
		if !hidesValues {
			shown.Desired = formatValue(difference.Desired)
			if !difference.IsAbsent {
				shown.Observed = formatValue(difference.Observed)
			}
		}
		drifted.first = append(drifted.first, shown)
	}
	return drifted
}

// formatValue returns a value as JSON, cut and without credentials.
func formatValue(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return redact.Truncate(string(content), maxDriftValue)
}

func (e *driftedError) reason() string {
	if e.taken != nil {
		return plan.ReasonAdoptionReported
	}
	return plan.ReasonDrifted
}

// Error names fields and managers. It contains no values: more people read it than read the object.
func (e *driftedError) Error() string {
	fields := make([]string, 0, len(e.first)+1)
	for _, difference := range e.first {
		text := difference.Path
		if len(difference.Managers) > 0 {
			text += " (" + strings.Join(difference.Managers, ", ") + ")"
		}
		fields = append(fields, text)
	}
	if more := e.total - len(e.first); more > 0 {
		fields = append(fields, fmt.Sprintf("%d more", more))
	}
	switch listed := strings.Join(fields, ", "); {
	case e.taken != nil && e.total == 0:
		return "the cluster has an object of this name that is not the hub's, and drift is Report: the hub leaves it alone. It would change nothing but its marks. Set drift to Repair to let the hub take it over"
	case e.taken != nil:
		return "the cluster has an object of this name that is not the hub's, and drift is Report: the hub leaves it alone. It would change " + listed + ". Set drift to Repair to let the hub take it over"
	default:
		return "another client changed it on the cluster, and drift is Report: the hub leaves it as it is. These fields differ: " + listed +
			". Set drift to Repair to undo that, or leave a field to the cluster by ignoreFields"
	}
}

// asNameTaken returns the name that a key waits for because of an error; nil for none.
func (e *driftedError) asNameTaken() *plan.Ref {
	if e.taken == nil {
		return nil
	}
	return &e.taken.ref
}

// stateOf identifies the state of the copy that a decision to report is about: the hub reads the copy again when its spec changes, or
// the fields that differ do. An object without a generation is read again after each change.
func stateOf(o plan.Operation) string {
	version := o.Copy.Object.GetResourceVersion()
	if generation := o.Copy.Object.GetGeneration(); generation != 0 {
		version = fmt.Sprintf("generation %d", generation)
	}
	return fmt.Sprintf("%s %s %s %q", o.Copy.Observed.UID, version, o.Desired.Mark.Hash, o.Decision.Fields)
}

// compare reads the copy of an operation, and reports how it differs.
func (w *targetWriter) compare(ctx context.Context, o plan.Operation) (*driftReport, error) {
	object, err := w.objects.Get(requestclass.With(ctx, requestclass.Extra), o.Copy.API.GroupVersionResource, o.Copy.Key)
	switch {
	case apierrors.IsNotFound(err), err == nil && object.GetUID() != o.Copy.Observed.UID:
		return nil, errOutdated
	case err != nil:
		return nil, err
	}
	differences, err := transform.Drift(o.Desired.Object.Object, object, w.fieldManager, o.Decision.Fields)
	if err != nil {
		return nil, err
	}
	report := &driftReport{state: stateOf(o)}
	if len(differences) > 0 {
		report.err = newDriftedError(differences, w.hidesValues(o.Copy.API.GroupResource()))
	}
	return report, nil
}

// hidesValues reports whether reports contain no values of objects of a resource on the target.
func (w *targetWriter) hidesValues(resource schema.GroupResource) bool {
	secrets := schema.GroupResource{Resource: "secrets"}
	return w.resource.GroupResource() == secrets || resource == secrets
}

// reportAdoption returns how the hub would change an object that it may adopt. It contains no values: as long as the hub does not own
// the object, users of the mailbox must not learn its content.
func (w *targetWriter) reportAdoption(ctx context.Context, current plan.Copy, object *unstructured.Unstructured, desired *transform.Desired) error {
	applied, err := w.objects.DryRunApply(ctx, current.API.GroupVersionResource, desired.Object, object.GetUID())
	if err != nil {
		return fmt.Errorf("cannot find out how the hub would change the object: %w", err)
	}
	drifted := newDriftedError(transform.AdoptionChanges(applied, object, desired.IgnoredFields, w.fieldManager), true)
	drifted.taken = &nameTakenError{ref: current.Ref()}
	return drifted
}

// adoptionPolicies returns the adoption policies of the PublishedResource and of the SyncTarget.
func (w *targetWriter) adoptionPolicies() []synchubv1alpha1.AdoptionPolicy {
	policies := []synchubv1alpha1.AdoptionPolicy{w.resource.Adoption}
	if w.adoption != nil {
		policies = append(policies, w.adoption())
	}
	return policies
}
