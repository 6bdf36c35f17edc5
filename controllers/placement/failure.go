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

package placement

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/events"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// failure is why an object cannot be placed at a destination.
type failure struct {
	// Reason is a constant; Message is for people, at most 1024 bytes.
	Reason, Message string
}

// equal reports whether two failures are the same, or both nil.
func (f *failure) equal(other *failure) bool {
	if f == nil || other == nil {
		return f == other
	}
	return *f == *other
}

var (
	errConflict       = errors.New("the mailbox of the destination has an object of this name that this placement did not make: choose another name, or ask who administers the inventory to delete that object")
	errContended      = errors.New("somebody keeps changing the copy in the mailbox; the hub repairs it less and less often")
	errRemoved        = errors.New("somebody keeps removing the copy from the mailbox; the hub creates it again less and less often")
	errWorkspaceLimit = errors.New("the workspace has more objects, or larger ones, than the hub reads: remove some, or ask the operator of the hub for a larger --mailbox-max-objects or --mailbox-max-bytes")
)

// notServedError means that a mailbox lacks an API.
type notServedError struct{ resource schema.GroupResource }

func (e *notServedError) Error() string {
	return fmt.Sprintf("the mailbox of the destination does not have the API %s: the operator of the hub finds the reason in the conditions of the PublishedResource, and in APIsMissing of the SyncTarget", e.resource)
}

// customizerNotFoundError means that a workspace lacks a Customizer.
type customizerNotFoundError struct{ customizer types.NamespacedName }

func (e *customizerNotFoundError) Error() string {
	return fmt.Sprintf("the annotation %s names the Customizer %s, which does not exist: create it, or remove the annotation", edgev2alpha1.AnnotationCustomizer, e.customizer)
}

// privilegedError returns why an object of an API that acts inside kcp is not placed.
func privilegedError(resource schema.GroupResource) error {
	message := fmt.Sprintf("%s act inside the mailbox workspace itself, so they are placed only if its PublishedResource has spec.privilegedUpsync: TargetGovernsMailbox", resource)
	if resource == crdGroupResource {
		message += ". Or ask the operator of the hub to publish the API with spec.installCRD: the hub then installs the definition on the clusters"
	}
	return &policy.DeniedError{Reason: rules.ReasonPrivileged, Message: message}
}

// reservedNameError returns why an object is not placed whose name kcp or the hub uses in each mailbox.
func reservedNameError(resource schema.GroupResource, key types.NamespacedName) error {
	return &policy.DeniedError{
		Reason:  policy.ReasonNameReserved,
		Message: fmt.Sprintf("each mailbox has an object %s %s of its own: choose another name, or leave the object out of the placement", resource, strings.TrimPrefix(key.String(), "/")),
	}
}

// contendedError returns why the hub waits before it repairs a copy.
func contendedError(isRemoved bool, fields []string) error {
	if isRemoved {
		return errRemoved
	}
	return fmt.Errorf("%w: %v", errContended, fields)
}

func newFailure(err error) failure {
	return failure{Reason: reasonOf(err), Message: events.Truncate(requestmetrics.SafeMessage(err))}
}

func reasonOf(err error) string {
	var tooLarge *transform.TooLargeError
	var invalid *transform.InvalidObjectError
	var denied *policy.DeniedError
	var notServed *notServedError
	var customized *customization.Error
	var missing *customizerNotFoundError
	switch {
	case errors.As(err, &customized):
		return customized.Reason
	case errors.As(err, &missing):
		return rules.ReasonCustomizerNotFound
	case errors.As(err, &denied):
		return denied.Reason
	case errors.Is(err, errWorkspaceLimit):
		return rules.ReasonLimitExceeded
	case errors.Is(err, errStoreWentBack):
		return plan.ReasonStoreWentBack
	case errors.Is(err, errConflict):
		return plan.ReasonConflict
	case errors.Is(err, errContended), errors.Is(err, errRemoved):
		return plan.ReasonContended
	case errors.As(err, &tooLarge):
		return plan.ReasonTooLarge
	case errors.As(err, &invalid), apierrors.IsInvalid(err):
		return plan.ReasonInvalid
	case errors.As(err, &notServed):
		return plan.ReasonNotServed
	default:
		return plan.ReasonMailboxRefused
	}
}

// isTransient reports whether a retry may succeed without a change of the object.
func isTransient(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || errors.Is(err, context.DeadlineExceeded)
}

// recordFailure records why a copy cannot be as desired. It returns only errors to retry: for other failures an
// event follows when the cause changes.
func (w *workspace) recordFailure(ctx context.Context, key pairKey, s *pairSnapshot, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// The hub is stopping, which is no failure of the object.
		return nil
	}
	err = fmt.Errorf("%s %s in the mailbox of %s: %w", key.resource.Resource, key.name, s.syncTarget.Name, err)
	why := newFailure(err)
	isFirst := w.recordResult(key, passResult{failure: &why})
	if why.Reason == plan.ReasonConflict {
		w.enqueueIfNameIsFree(key)
	}
	if isFirst {
		// A task of its own writes the event, because the workspace may be slow to accept it, and must not
		// delay the mailbox.
		w.enqueue(task{resource: key.resource, name: key.name, warning: why})
	}
	if why.Reason != plan.ReasonMailboxRefused && !isTransient(err) {
		return nil
	}
	return err
}

// enqueueIfNameIsFree enqueues a pair that waits for its name in the mailbox if the name is free already: no event follows then.
func (w *workspace) enqueueIfNameIsFree(key pairKey) {
	cached, _ := w.Mailboxes.Get(key.resource, key.mailbox, key.name)
	if current, _ := w.writes.Current(key, cached); current == nil {
		w.enqueue(key.task())
	}
}

// hasFailure reports whether the object fails at some destination with a reason.
func (o *object) hasFailure(reason string) bool {
	for _, found := range o.pairs {
		if found.failure != nil && found.failure.Reason == reason {
			return true
		}
	}
	return false
}

// warn writes an event about a failure on the object in the workspace. It only logs an error, because the
// status of the placement reports the failure too.
func (w *workspace) warn(ctx context.Context, key objectKey, why failure) {
	object, _ := w.Workloads.Get(key.resource, w.cluster, key.name)
	client, ok := w.Workloads.Client(w.cluster)
	if object == nil || !ok || why.Reason == rules.ReasonLimitExceeded {
		return
	}
	if err := events.WarnObject(ctx, client, object, why.Reason, why.Message, w.Clock.Now()); err != nil {
		log.FromContext(ctx).Info("cannot write an event to the workload workspace", "reason", why.Reason, "error", err.Error())
	}
}

// recordSuccess records that the mailbox of a pair is in the desired state.
func (w *workspace) recordSuccess(key pairKey, s *pairSnapshot, decision plan.Decision) {
	var syncStatus *syncStatus
	isPlaced := s.desired && (decision.Cause == plan.InSync || decision.Action == plan.Create || decision.Action == plan.Update)
	if isPlaced {
		syncStatus = w.observeSyncStatus(key, s, decision)
	}
	w.recordResult(key, passResult{placed: isPlaced, syncStatus: syncStatus})
}

// recordResult records the result of a pass. isNewFailure is true if the object has not failed at any destination for this reason.
func (w *workspace) recordResult(key pairKey, next passResult) (isNewFailure bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	entry, found := w.pairAt(key)
	if found == nil {
		return false
	}
	before := found.result()
	isNewFailure = next.failure != nil && !entry.hasFailure(next.failure.Reason)
	if awaitsName := next.failure != nil && next.failure.Reason == plan.ReasonConflict; awaitsName || before.failure != nil {
		w.names.set(key, w.cluster, awaitsName)
	}
	w.change(entry, key.mailbox, func() { found.setResult(next) })
	w.enqueueWithdrawals(key.objectKey, entry, key.mailbox)
	if before.equal(next) {
		return isNewFailure
	}
	w.reportRequests.Publish(w.cluster)
	if before.changesCopy(next) {
		w.enqueueWantedStatus(key.objectKey, entry)
	}
	w.releaseHeld(key)
	return isNewFailure
}
