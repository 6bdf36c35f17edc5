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
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

var (
	errNameTakenInMailbox = errors.New("the mailbox has an object of this name that the hub did not upsync from this target object: remove it, or choose another name on the target")
	errMailboxRefused     = errors.New("the mailbox refused the object")
	errFieldConflict      = errors.New("another writer changes the same fields; the hub repairs them less and less often")
	errRemovedInMailbox   = errors.New("somebody deleted the object in the mailbox each time after the hub had upsynced it: find who does, or take the object out of upsync. The hub makes it again less and less often")
	errCordoned           = errors.New("the hub creates nothing on the target while spec.unschedulable of its SyncTarget is true")
)

// removedError means that the copy was repeatedly removed from the target.
type removedError struct{ cause string }

func (e *removedError) Error() string {
	return "the object vanished from the target each time after the hub had made it: " + e.cause + ". The hub makes it again less and less often"
}

func newRemovedError(desired *transform.Desired) *removedError {
	if account := transform.TokenAccountOf(desired.Object); account != "" {
		return &removedError{"Kubernetes removes the token of a ServiceAccount that the cluster does not have. Select the ServiceAccount " + account + " too"}
	}
	return &removedError{"find the controller or the policy there that deletes it or takes off its label " + ownership.OwnerLabel + ", or do not select it"}
}

// Failure is why an object is not in sync.
type Failure struct {
	// Reason is one of the Reason constants. Message is for users, with at most 1024 bytes.
	Reason, Message string
	// Differences are the first fields that differ on the target, at most [edgev2alpha1.MaxDifferences]; nil for none. They are shared.
	Differences *[]edgev2alpha1.FieldDifference
	// Removal is true if the reason is [plan.ReasonStoreWentBack], and the copy would be removed.
	Removal bool
}

// Equal reports whether two failures are the same.
func (f Failure) Equal(other Failure) bool {
	if f.Differences != other.Differences && apiequality.Semantic.DeepEqual(f.Differences, other.Differences) {
		f.Differences = other.Differences
	}
	return f == other
}

// isLimitError reports whether the mailbox of an object exceeds its limits.
func isLimitError(err error) bool {
	_, is := errors.AsType[*mailboxes.LimitError](err)
	return is
}

// nameTakenError means that another object has the name on the target.
type nameTakenError struct {
	ref    plan.Ref
	reason string
	// adoptable is true if no mark forbids the adoption of that object (see [ownership.IsAdoptable]).
	adoptable bool
	// unverified is true if the object's mark names this hub, but does not verify.
	unverified bool
}

func (e *nameTakenError) Error() string {
	text := fmt.Sprintf("the target has an object of this name that is not the copy of the mailbox object (%s): remove the object from the target, or choose another name", e.reason)
	const adoption = "allow its adoption, by spec.adoption of the PublishedResource or `kubectl synchub register NAME --target-kubeconfig FILE --adopt`"
	switch {
	case e.adoptable:
		text += ", or " + adoption
	case e.unverified:
		text += ", or have the hub's operator put the former key back, or take the annotation " + ownership.MarkAnnotation + " off the object there and " + adoption
	}
	return text
}

// immutableError means that the target refuses to change a field.
type immutableError struct {
	fields []string
	err    error
}

func (e *immutableError) Error() string {
	return fmt.Sprintf("the target refuses to change %s: delete the object where it was written and create it again, or have the operator of the hub set spec.replace of the PublishedResource: %v", strings.Join(e.fields, ", "), e.err)
}

func (e *immutableError) Unwrap() error { return e.err }

func newFailure(err error) Failure {
	held, isHeld := errors.AsType[*plan.HeldError](err)
	failure := Failure{Reason: ReasonFor(err), Message: status.Truncate(requestmetrics.SafeMessage(err)), Removal: isHeld && held.Removal}
	if drifted, ok := errors.AsType[*driftedError](err); ok && failure.Reason == drifted.reason() {
		failure.Differences = &drifted.first
	}
	return failure
}

// ReasonFor returns the reason of a failure.
func ReasonFor(err error) string {
	reason := cmp.Or(observe.ReasonFor(err), reasonForAuthor(err))
	_, isTaken := errors.AsType[*nameTakenError](err)
	_, isImmutable := errors.AsType[*immutableError](err)
	_, isRemoved := errors.AsType[*removedError](err)
	drifted, isDrifted := errors.AsType[*driftedError](err)
	switch {
	case reason != "":
		return reason
	case isLimitError(err):
		return plan.ReasonMailboxLimitExceeded
	case isDrifted:
		return drifted.reason()
	case isTaken, errors.Is(err, errNameTakenInMailbox):
		return plan.ReasonConflict
	case errors.Is(err, errFieldConflict):
		return plan.ReasonContended
	case isRemoved:
		return plan.ReasonRemovedByCluster
	case errors.Is(err, errRemovedInMailbox):
		return plan.ReasonRemovedInMailbox
	case errors.Is(err, errCordoned):
		return plan.ReasonTargetCordoned
	case isImmutable:
		return plan.ReasonImmutable
	case errors.Is(err, errMailboxRefused):
		// The reasons after this case are for responses of the target.
		return plan.ReasonMailboxRefused
	default:
		return reasonForResponse(err)
	}
}

// reasonForResponse returns the reason for an error response of the target's API server.
func reasonForResponse(err error) string {
	var network net.Error
	switch {
	case apierrors.IsRequestEntityTooLargeError(err), tooLargeToStore.MatchString(err.Error()):
		return plan.ReasonTooLarge
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return plan.ReasonNamespaceTerminating
	case isAdmissionDenied(err):
		return plan.ReasonAdmissionDenied
	case apierrors.IsForbidden(err) && quotaMessage.MatchString(err.Error()):
		return plan.ReasonQuotaExceeded
	case isMissingRight(err):
		return plan.ReasonForbidden
	case apierrors.IsForbidden(err):
		// Another admission plugin than a webhook or a policy: Pod Security, LimitRange, the resize of a volume.
		return plan.ReasonAdmissionDenied
	case isInvalid(err):
		return plan.ReasonInvalid
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return plan.ReasonNotServed
	case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown &&
		(errors.As(err, &network) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)):
		return plan.ReasonTargetUnreachable
	default:
		return plan.ReasonFailed
	}
}

// isInvalid reports whether the object itself is why the target refused it.
func isInvalid(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "failed to create typed patch object") || isMissingRole(err)
}

// isMissingRole reports whether the target refused a binding because it does not have the role. The response names the binding.
func isMissingRole(err error) bool {
	missing, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(missing) && missing.ErrStatus.Details != nil && missing.ErrStatus.Details.Name != "" &&
		missing.ErrStatus.Details.Group == rbacv1.GroupName && strings.HasSuffix(missing.ErrStatus.Details.Kind, "bindings")
}

// tooLargeToStore matches etcd's refusal of an object that the API server has accepted; the response has no reason.
var tooLargeToStore = regexp.MustCompile(`etcdserver: request is too large|trying to send message larger than max`)

// quotaMessage matches the refusals of the admission plugin for quotas: too much, without a number that is counted, or not counted yet.
var quotaMessage = regexp.MustCompile(`is forbidden: (exceeded|failed) quota: |status unknown for quota: |insufficient quota to match these scopes: `)

// quotaUnknownMessage matches the refusal because the usage of a new quota is not computed yet.
var quotaUnknownMessage = regexp.MustCompile(`is forbidden: status unknown for quota: `)

// missingRightMessage matches the API server's refusals because of a missing right, both from the authorizer and from checks that
// require further rights. Admission plugins respond with the same code and reason.
var missingRightMessage = regexp.MustCompile(`[Ff]orbidden: User "([^"\\]|\\.)*" cannot \S+ (resource|path) "|` +
	`is forbidden: user "([^"\\]|\\.)*" \(groups=\[|` + // it is attempting to grant RBAC permissions not currently held
	`cannot set (an ownerRef|blockOwnerDeletion)|` +
	`user not permitted to `)

// isMissingRight reports whether the target refused a request because the hub's user lacks a right.
func isMissingRight(err error) bool {
	return apierrors.IsForbidden(err) && missingRightMessage.MatchString(err.Error())
}

// admissionDeniedMessage matches the API server's message that a webhook or an admission policy denied the request. Only the
// message shows this: a webhook chooses the code and the reason itself.
var admissionDeniedMessage = regexp.MustCompile(`admission webhook "[^"]*" denied the request|denied request: |ValidatingAdmissionPolicy '[^']*' (with binding|denied)`)

func isAdmissionDenied(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && admissionDeniedMessage.MatchString(err.Error())
}

// immutableMessage matches messages of API servers and of CRD rules that a field cannot be changed. There is no reason code
// for it.
var immutableMessage = regexp.MustCompile(`(?i)immutable|may not (be )?(change|update)|(can ?not|can't|must not) (be )?(change|modif|update)|updates to .* (are )?forbidden|failed rule: self(\.[\w.]+)? == oldSelf`)

// asImmutableError returns an [immutableError] if the request was refused because fields cannot be changed, else err.
func asImmutableError(err error) error {
	if fields := immutableFields(err); len(fields) > 0 {
		return &immutableError{fields: fields, err: err}
	}
	return err
}

// IsImmutable reports whether a request was refused because fields cannot be changed.
func IsImmutable(err error) bool { return len(immutableFields(err)) > 0 }

// immutableFields returns the fields that cannot be changed, according to a refused update.
func immutableFields(err error) []string {
	if isAdmissionDenied(err) || isOtherUID(err) {
		// If the UID differs, another object has taken the name since the pass observed it.
		return nil
	}
	var fields []string
	for _, cause := range invalidCauses(err) {
		if immutableMessage.MatchString(causeDetail(cause.Message)) {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// causeDetail returns the detail of a cause without the refused value, which may contain anything: "Invalid value: <value>:
// <detail>".
func causeDetail(message string) string {
	if i := strings.LastIndex(message, ": "); i >= 0 && strings.HasPrefix(message, "Invalid value: ") {
		return message[i:]
	}
	return message
}

// otherUIDMessage matches the response to a write with a UID as a precondition if another object has the name, or no object.
var otherUIDMessage = regexp.MustCompile(`(?i)uid mismatch|precondition failed: UID`)

// isOtherUID reports whether a write was refused because it would change the UID.
func isOtherUID(err error) bool {
	return slices.ContainsFunc(invalidCauses(err), func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}

// invalidCauses returns the causes in an API server's response that an object is invalid; none for another response.
func invalidCauses(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}
