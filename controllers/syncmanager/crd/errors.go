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

package crd

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// Further reasons of a [State].
const (
	// ReasonPending: the hub has not read the CRD yet.
	ReasonPending = "Pending"
	// ReasonNotNeeded: the target serves the API without a CRD.
	ReasonNotNeeded = "NotNeeded"
	// ReasonKept: the CRD is no longer desired, and stays on the target.
	ReasonKept = "Kept"
	// ReasonContended: another writer keeps changing the CRD.
	ReasonContended = "Contended"
	// ReasonInvalid: no target accepts the CRD, or this one does not.
	ReasonInvalid = "Invalid"
	// ReasonForbidden: the target does not let the hub read or write CRDs.
	ReasonForbidden = "Forbidden"
	// ReasonTargetUnreachable: the request did not reach the target.
	ReasonTargetUnreachable = "TargetUnreachable"
	// ReasonFailed: any other failure.
	ReasonFailed = "Failed"
)

// IsPending reports whether the target may serve the API later without user action.
func (s State) IsPending() bool {
	switch s.Reason {
	case ReasonPending, ReasonMissing, ReasonChanged, ReasonNotEstablished, ReasonTerminating, ReasonTargetUnreachable:
		return !s.Ready
	default:
		return false
	}
}

func stateForDecision(decision Decision) State {
	return State{Reason: decision.Reason, Message: decision.Message, Ready: decision.Usable, Installed: decision.Installed}
}

// backoffState returns the state of a CRD that the hub must not write before wait has passed.
func backoffState(decision Decision, wait time.Duration) State {
	state := stateForDecision(decision)
	state.Reason, state.RequeueAfter = ReasonContended, wait
	return state
}

// failedState returns the failure of an attempt, as a state and as an error. decision supplies the other fields of the state.
func failedState(decision Decision, attempt string, err error) (State, error) {
	state := stateForDecision(decision)
	state.Reason, state.Message = errorReason(err), fmt.Sprintf("Cannot %s: %s.", attempt, strings.TrimSuffix(requestmetrics.SafeMessage(err), "."))
	return state, fmt.Errorf("cannot %s: %w", attempt, err)
}

func errorReason(err error) string {
	var network net.Error
	switch {
	case isReplaced(err):
		return ReasonFailed
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return ReasonInvalid
	case apierrors.IsForbidden(err):
		return ReasonForbidden
	case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown &&
		(errors.As(err, &network) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)):
		return ReasonTargetUnreachable
	default:
		return ReasonFailed
	}
}

// isReplaced reports whether the target refused a write because the CRD has another UID than the observed one.
func isReplaced(err error) bool {
	const field = "metadata.uid"
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == field
}

// sentence returns the text of an error as a sentence for users.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
