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

package sync

import (
	"errors"
	"maps"
	"net"
	gosync "sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"

	corev1 "k8s.io/api/core/v1"

	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// Reasons why an object is not in step, as they stand in events and in the status of SyncerConfigs.
const (
	ReasonConflict             = "Conflict"
	ReasonContended            = "Contended"
	ReasonForbidden            = "Forbidden"
	ReasonInvalid              = "Invalid"
	ReasonNamespaceTerminating = "NamespaceTerminating"
	ReasonNotServed            = "NotServed"
	ReasonTargetUnreachable    = "TargetUnreachable"
	ReasonTooLarge             = "TooLarge"
	ReasonFailed               = "Failed"
)

var (
	errTaken     = errors.New("the target has an object of this name that is not the hub's: remove it there, or choose another name")
	errMailbox   = errors.New("cannot write the status to the mailbox")
	errContended = errors.New("another writer on the target changes the same fields; the hub repairs them less and less often")
)

// Failure is why an object is not in step.
type Failure struct {
	// Reason is one of the Reason constants; Message is for people.
	Reason, Message string
}

func failureOf(err error) Failure {
	return Failure{Reason: reasonOf(err), Message: err.Error()}
}

func reasonOf(err error) string {
	var tooLarge *transform.TooLargeError
	var network net.Error
	switch {
	case errors.Is(err, errMailbox):
		// The other reasons speak of the target.
		return ReasonFailed
	case errors.As(err, &tooLarge), apierrors.IsRequestEntityTooLargeError(err):
		return ReasonTooLarge
	case errors.Is(err, errTaken):
		return ReasonConflict
	case errors.Is(err, errContended):
		return ReasonContended
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ReasonNamespaceTerminating
	case apierrors.IsForbidden(err):
		return ReasonForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return ReasonInvalid
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return ReasonNotServed
	case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown &&
		(errors.As(err, &network) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)):
		return ReasonTargetUnreachable
	default:
		return ReasonFailed
	}
}

const (
	// contentionWindow and repairsAtOnce: drift of one object is repaired at once, from the third time within ten
	// minutes with growing waits (rule 4 of the design).
	contentionWindow = 10 * time.Minute
	repairsAtOnce    = 2
	firstWait        = 15 * time.Second
	lastWait         = 5 * time.Minute
)

// failures holds what is wrong with objects, and how often each was repaired.
type failures struct {
	clock clock.Clock

	lock    gosync.Mutex
	current map[types.NamespacedName]Failure
	repairs map[types.NamespacedName]*repairs
}

// repairs is the recent history of one object's drift.
type repairs struct {
	// times are the repairs of the last contentionWindow.
	times []time.Time
	// wait is how long the last repair had to wait; zero until there is contention.
	wait time.Duration
	// due is when the next repair is allowed; zero until there is drift after the last one.
	due time.Time
}

func newFailures(clock clock.Clock) *failures {
	return &failures{clock: clock, current: map[types.NamespacedName]Failure{}, repairs: map[types.NamespacedName]*repairs{}}
}

// set returns true if the object did not fail for this reason before.
func (f *failures) set(key types.NamespacedName, failure Failure) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	before, ok := f.current[key]
	f.current[key] = failure
	return !ok || before.Reason != failure.Reason
}

// clear returns true if the object failed before.
func (f *failures) clear(key types.NamespacedName) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	_, failed := f.current[key]
	delete(f.current, key)
	return failed
}

// forget drops the history of an object whose source is gone.
func (f *failures) forget(key types.NamespacedName) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.repairs, key)
}

func (f *failures) snapshot() map[types.NamespacedName]Failure {
	f.lock.Lock()
	defer f.lock.Unlock()
	return maps.Clone(f.current)
}

// repair is asked before each repair of drift: contended tells to wait instead.
func (f *failures) repair(key types.NamespacedName) (wait time.Duration, contended bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	now := f.clock.Now()
	history, ok := f.repairs[key]
	if !ok {
		history = &repairs{}
		f.repairs[key] = history
	}
	for len(history.times) > 0 && now.Sub(history.times[0]) > contentionWindow {
		history.times = history.times[1:]
	}
	if len(history.times) == 0 {
		*history = repairs{}
	}
	if history.wait == 0 && len(history.times) < repairsAtOnce {
		history.times = append(history.times, now)
		return 0, false
	}
	switch {
	case history.due.IsZero():
		history.wait = min(max(2*history.wait, firstWait), lastWait)
		history.due = now.Add(history.wait)
		return history.wait, true
	case now.Before(history.due):
		return history.due.Sub(now), true
	default:
		history.times, history.due = append(history.times, now), time.Time{}
		return 0, false
	}
}
