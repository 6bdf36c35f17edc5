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
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/status"
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

// Failures with messages for users.
var (
	errConflict       = denied(plan.ReasonConflict, "the mailbox of the destination has an object of this name that this placement did not make: choose another name, or ask who administers the inventory to delete that object")
	errContended      = denied(plan.ReasonContended, "somebody keeps changing the copy in the mailbox; the hub repairs it less and less often")
	errRemoved        = denied(plan.ReasonContended, "somebody keeps removing the copy from the mailbox; the hub creates it again less and less often")
	errStoreWentBack  = denied(plan.ReasonStoreWentBack, "kcp went back to an earlier state: the copy is neither withdrawn nor overwritten until the administrator of the destination confirms that")
	errWorkspaceLimit = denied(rules.ReasonLimitExceeded, "the workspace has more objects, or larger ones, than the hub reads: remove some, or ask the operator of the hub for a larger --mailbox-max-objects or --mailbox-max-bytes")
)

func denied(reason, message string) error {
	return &policy.DeniedError{Reason: reason, Message: message}
}

// notServedError returns why an object is not placed whose API the mailbox lacks.
func notServedError(resource schema.GroupResource) error {
	return denied(plan.ReasonNotServed, fmt.Sprintf("the mailbox of the destination does not have the API %s: the operator of the hub finds the reason in the conditions of the PublishedResource, and in APIsMissing of the SyncTarget", resource))
}

// customizerNotFoundError returns why an object is not placed whose Customizer the workspace lacks.
func customizerNotFoundError(customizer types.NamespacedName) error {
	return denied(rules.ReasonCustomizerNotFound, fmt.Sprintf("the annotation %s names the Customizer %s, which does not exist: create it, or remove the annotation", edgev2alpha1.AnnotationCustomizer, customizer))
}

// privilegedError returns why an object of an API that acts inside kcp is not placed.
func privilegedError(resource schema.GroupResource) error {
	if _, hasTwin := policy.FindTwinned(resource.Group, resource.Resource, ""); hasTwin {
		return denied(rules.ReasonPrivileged, fmt.Sprintf("%s act inside the mailbox workspace itself, so only their twins are placed: ask the operator of the hub to publish these, by a PublishedResource with spec.projection.group: %s", resource, policy.TwinGroup))
	}
	message := fmt.Sprintf("%s act inside the mailbox workspace itself, so they are placed only if its PublishedResource has spec.privilegedUpsync: TargetGovernsMailbox", resource)
	if resource == crdGroupResource {
		message += ". Or ask the operator of the hub to publish the API with spec.installCRD: the hub then installs the definition on the clusters"
	}
	return denied(rules.ReasonPrivileged, message)
}

// clusterScopedError returns why a cluster-scoped object is not placed on a cluster where each workspace has namespaces of its own.
func clusterScopedError(resource schema.GroupResource) error {
	return denied(rules.ReasonClusterScoped, fmt.Sprintf("%s are cluster-scoped, and each workspace has only its own namespaces on this cluster: leave the object out of the placement, or ask the administrator of the inventory to list the resource in spec.tenancy.clusterScoped of the SyncTarget", resource))
}

// reservedNameError returns why an object is not placed whose name kcp or the hub uses in each mailbox.
func reservedNameError(resource schema.GroupResource, key types.NamespacedName) error {
	return denied(policy.ReasonNameReserved, fmt.Sprintf("each mailbox has an object %s %s of its own: choose another name, or leave the object out of the placement", resource, strings.TrimPrefix(key.String(), "/")))
}

// contendedError returns why the hub waits before it repairs a copy.
func contendedError(isRemoved bool, fields []string) error {
	if isRemoved {
		return errRemoved
	}
	return fmt.Errorf("%w: %v", errContended, fields)
}

func newFailure(err error) failure {
	return failure{Reason: reasonOf(err), Message: status.Truncate(requestmetrics.SafeMessage(err))}
}

func reasonOf(err error) string {
	if refusal, ok := errors.AsType[*policy.DeniedError](err); ok {
		return refusal.Reason
	}
	if customized, ok := errors.AsType[*customization.Error](err); ok {
		return customized.Reason
	}
	if _, ok := errors.AsType[*transform.TooLargeError](err); ok {
		return plan.ReasonTooLarge
	}
	if _, ok := errors.AsType[*transform.InvalidObjectError](err); ok || apierrors.IsInvalid(err) {
		return plan.ReasonInvalid
	}
	return plan.ReasonMailboxRefused
}

// isTransient reports whether a retry may succeed without a change of the object.
func isTransient(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || errors.Is(err, context.DeadlineExceeded)
}

// errorToRetry returns the error of a pass that must be repeated without an event; nil for another one. A refusal is reported already.
func errorToRetry(err error, isRefusal bool) error {
	switch {
	case isRefusal:
		return &queue.ReportedError{Err: err}
	case isTransient(err):
		return err
	default:
		return nil
	}
}

// warn writes an event about a failure on an object of a workspace. It only logs an error, because the
// status of the placement reports the failure too.
func warn(ctx context.Context, of *sources, key objectKey, why failure) {
	object, _ := of.get(key)
	client, ok := of.workloads.Client(of.cluster)
	if object == nil || !ok || why.Reason == rules.ReasonLimitExceeded {
		return
	}
	if err := status.WarnObject(ctx, client, object, why.Reason, why.Message, of.clock.Now()); err != nil {
		log.FromContext(ctx).Info("cannot write an event to the workload workspace", "reason", why.Reason, "error", err.Error())
	}
}
