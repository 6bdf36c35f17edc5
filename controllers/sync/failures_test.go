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
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/targets"
)

func TestReasonOf(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	configMap := schema.GroupKind{Kind: "ConfigMap"}
	terminating := apierrors.NewForbidden(configMaps, "x", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	dial := func(err error) error {
		return &url.Error{Op: "Patch", URL: "https://127.0.0.1:1", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	deadline, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()

	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"too large for the mark":            {&transform.TooLargeError{Size: 1}, ReasonTooLarge},
		"too large for the server":          {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), ReasonTooLarge},
		"a taken name":                      {fmt.Errorf("%w: no mark", errTaken), ReasonConflict},
		"another writer":                    {fmt.Errorf("%w: [other]", errContended), ReasonContended},
		"forbidden":                         {apierrors.NewForbidden(configMaps, "x", errors.New("no")), ReasonForbidden},
		"namespace terminating":             {terminating, ReasonNamespaceTerminating},
		"invalid":                           {apierrors.NewInvalid(configMap, "x", nil), ReasonInvalid},
		"bad request":                       {apierrors.NewBadRequest("unknown field"), ReasonInvalid},
		"not found":                         {apierrors.NewNotFound(configMaps, "x"), ReasonNotServed},
		"resource not served":               {apierrors.NewGenericServerResponse(404, "patch", configMaps, "x", "", 0, true), ReasonNotServed},
		"method not supported":              {apierrors.NewMethodNotSupported(configMaps, "patch"), ReasonNotServed},
		"conflict":                          {apierrors.NewConflict(configMaps, "x", errors.New("replaced")), ReasonFailed},
		"exists":                            {fmt.Errorf("%w: x", targets.ErrExists), ReasonFailed},
		"already exists":                    {apierrors.NewAlreadyExists(configMaps, "x"), ReasonFailed},
		"unauthorized":                      {apierrors.NewUnauthorized("expired"), ReasonFailed},
		"gone":                              {apierrors.NewResourceExpired("old"), ReasonFailed},
		"too many requests":                 {apierrors.NewTooManyRequests("slow down", 1), ReasonFailed},
		"internal error":                    {apierrors.NewInternalError(errors.New("oops")), ReasonFailed},
		"service unavailable":               {apierrors.NewServiceUnavailable("starting"), ReasonFailed},
		"the server's own timeout":          {apierrors.NewServerTimeout(configMaps, "patch", 1), ReasonFailed},
		"the server's timeout of a request": {apierrors.NewTimeoutError("too slow", 1), ReasonFailed},
		"anything else":                     {errors.New("oops"), ReasonFailed},
		"connection refused":                {dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), ReasonTargetUnreachable},
		"connection reset":                  {dial(os.NewSyscallError("read", syscall.ECONNRESET)), ReasonTargetUnreachable},
		"no route":                          {dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), ReasonTargetUnreachable},
		"no such host":                      {dial(&net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}), ReasonTargetUnreachable},
		"connection closed":                 {&url.Error{Op: "Patch", URL: "https://127.0.0.1:1", Err: io.EOF}, ReasonTargetUnreachable},
		"deadline exceeded":                 {context.DeadlineExceeded, ReasonTargetUnreachable},
		"deadline of a context":             {deadline.Err(), ReasonTargetUnreachable},
		"deadline of a request":             {&url.Error{Op: "Patch", URL: "https://127.0.0.1:1", Err: context.DeadlineExceeded}, ReasonTargetUnreachable},
		"deadline of the operating system":  {dial(os.ErrDeadlineExceeded), ReasonTargetUnreachable},
		"deadline while waiting for a turn": {fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded), ReasonTargetUnreachable},
		"two errors":                        {fmt.Errorf("%w; and %w", errors.New("oops"), context.DeadlineExceeded), ReasonTargetUnreachable},
		"kcp is away":                       {fmt.Errorf("%w: %w", errMailbox, dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))), ReasonFailed},
		"kcp forbids the status":            {fmt.Errorf("%w: %w", errMailbox, apierrors.NewForbidden(configMaps, "x", errors.New("no"))), ReasonFailed},
		"kcp has no such object":            {fmt.Errorf("%w: %w", errMailbox, apierrors.NewNotFound(configMaps, "x")), ReasonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("configmaps a/x: %w", test.err)} {
				if got := reasonOf(err); got != test.want {
					t.Errorf("%v: want %s, got %s", err, test.want, got)
				}
			}
			if got := failureOf(test.err); got.Reason != test.want || got.Message != test.err.Error() {
				t.Errorf("the failure is %+v", got)
			}
		})
	}
}

func TestIsMissingNamespace(t *testing.T) {
	namespaces, configMaps := schema.GroupResource{Resource: "namespaces"}, schema.GroupResource{Resource: "configmaps"}
	forbidden := apierrors.NewForbidden(namespaces, "shop", errors.New("no"))
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no error":               {nil, false},
		"the namespace":          {apierrors.NewNotFound(namespaces, "shop"), true},
		"the namespace, wrapped": {fmt.Errorf("cannot: %w", apierrors.NewNotFound(namespaces, "shop")), true},
		"another namespace":      {apierrors.NewNotFound(namespaces, "bank"), false},
		"the object":             {apierrors.NewNotFound(configMaps, "shop"), false},
		"no details":             {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound}}, false},
		"forbidden":              {forbidden, false},
		"something else":         {errors.New("oops"), false},
	} {
		if got := isMissingNamespace(test.err, "shop"); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

func TestFailuresAreToldOnce(t *testing.T) {
	failures := newFailures(testclock.NewFakeClock(time.Unix(1000, 0)))
	conflict, conflictAgain := Failure{ReasonConflict, "first"}, Failure{ReasonConflict, "second"}
	if failures.clear(someKey) {
		t.Error("an object that never failed was said to have")
	}
	if !failures.set(someKey, conflict) {
		t.Error("the first failure is not new")
	}
	if failures.set(someKey, conflictAgain) {
		t.Error("the same reason is new")
	}
	snapshot := failures.snapshot()
	if snapshot[someKey] != conflictAgain || len(snapshot) != 1 {
		t.Errorf("the last message does not count: %v", snapshot)
	}
	if !failures.set(someKey, Failure{ReasonForbidden, "third"}) {
		t.Error("another reason is not new")
	}
	if !failures.set(types.NamespacedName{Name: "other"}, conflict) {
		t.Error("another object's failure is not new")
	}
	if snapshot[someKey] != conflictAgain {
		t.Error("a snapshot changes")
	}
	if !failures.clear(someKey) || failures.clear(someKey) || len(failures.snapshot()) != 1 {
		t.Error("a failure is not cleared once")
	}
	if !failures.set(someKey, conflict) {
		t.Error("a failure after a success is not new")
	}
}

// writer is another writer on the target, which undoes every repair as soon as it is made.
type writer struct {
	t        *testing.T
	clock    *testclock.FakeClock
	failures *failures
}

func newWriter(t *testing.T) *writer {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	return &writer{t: t, clock: clock, failures: newFailures(clock)}
}

// repaired fails the test unless drift is repaired at once.
func (w *writer) repaired() {
	w.t.Helper()
	if wait, contended := w.failures.repair(someKey); contended || wait != 0 {
		w.t.Fatalf("at %v: want a repair, got %v, %v", w.clock.Now(), wait, contended)
	}
}

// waits fails the test unless the repair has to wait for that long.
func (w *writer) waits(want time.Duration) {
	w.t.Helper()
	if wait, contended := w.failures.repair(someKey); !contended || wait != want {
		w.t.Fatalf("at %v: want to wait %v, got %v, %v", w.clock.Now(), want, wait, contended)
	}
}

func TestRepairs(t *testing.T) {
	writer := newWriter(t)
	writer.repaired()
	writer.repaired()
	for round, wait := range []time.Duration{
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute,
		5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	} {
		writer.waits(wait)
		// Asking early neither repairs nor puts it off.
		writer.clock.Step(wait / 3)
		writer.waits(wait - wait/3)
		writer.clock.Step(wait - wait/3 - time.Nanosecond)
		writer.waits(time.Nanosecond)
		// Sometimes the queue is late.
		writer.clock.Step(time.Nanosecond + time.Duration(round%2)*time.Second)
		writer.repaired()
	}
}

// A writer that comes back within ten minutes finds the waits where they were, one that comes later finds them forgotten.
func TestRepairsAreForgotten(t *testing.T) {
	for name, test := range map[string]struct {
		quiet time.Duration
		want  time.Duration
	}{
		"soon":                    {time.Minute, time.Minute},
		"after ten minutes":       {contentionWindow, time.Minute},
		"after more than that":    {contentionWindow + time.Nanosecond, 0},
		"after a day":             {24 * time.Hour, 0},
		"before the next was due": {time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			writer := newWriter(t)
			writer.repaired()
			writer.repaired()
			for _, wait := range []time.Duration{15 * time.Second, 30 * time.Second} {
				writer.waits(wait)
				writer.clock.Step(wait)
				writer.repaired()
			}
			writer.clock.Step(test.quiet)
			if test.want > 0 {
				writer.waits(test.want)
				return
			}
			writer.repaired()
			writer.repaired()
			writer.waits(15 * time.Second)
		})
	}
}

func TestRepairsWithinTenMinutes(t *testing.T) {
	const minute = time.Minute
	for name, test := range map[string]struct {
		// steps are the times between drifts.
		steps     []time.Duration
		contended bool
	}{
		"the second at once":                  {[]time.Duration{0}, false},
		"the third at once":                   {[]time.Duration{0, 0}, true},
		"the third within ten minutes":        {[]time.Duration{5 * minute, 4 * minute}, true},
		"the third at ten minutes":            {[]time.Duration{5 * minute, 5 * minute}, true},
		"the third after ten minutes":         {[]time.Duration{5 * minute, 5*minute + 1}, false},
		"the fourth, each in its ten minutes": {[]time.Duration{6 * minute, 6 * minute, 6 * minute}, false},
		"the fourth, close to the third":      {[]time.Duration{6 * minute, 6 * minute, 3 * minute}, true},
		"rarely":                              {[]time.Duration{11 * minute, 11 * minute, 11 * minute, 11 * minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			writer := newWriter(t)
			writer.repaired()
			for i, step := range test.steps {
				writer.clock.Step(step)
				if i == len(test.steps)-1 && test.contended {
					writer.waits(15 * time.Second)
					return
				}
				writer.repaired()
			}
		})
	}
}

// What was put off and then went away by itself counts from the last repair.
func TestRepairThatWasNotNeeded(t *testing.T) {
	writer := newWriter(t)
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
	writer.clock.Step(contentionWindow + time.Nanosecond)
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
}

func TestRepairsOfOthers(t *testing.T) {
	writer := newWriter(t)
	writer.repaired()
	writer.repaired()
	writer.waits(15 * time.Second)
	if _, contended := writer.failures.repair(types.NamespacedName{Namespace: "shop", Name: "other"}); contended {
		t.Error("one object's drift holds up another's repair")
	}
	writer.failures.forget(someKey)
	writer.repaired()
}
