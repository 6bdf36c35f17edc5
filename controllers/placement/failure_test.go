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
	"errors"
	"fmt"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

func TestReasons(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for reason, err := range map[string]error{
		rules.ReasonPrivileged:    privilegedError(secrets),
		policy.ReasonNameReserved: &policy.DeniedError{Reason: policy.ReasonNameReserved, Message: "x"},
		rules.ReasonLimitExceeded: errWorkspaceLimit,
		plan.ReasonConflict:       errConflict,
		plan.ReasonContended:      fmt.Errorf("%w: [spec]", errContended),
		plan.ReasonTooLarge:       &transform.TooLargeError{},
		plan.ReasonInvalid:        apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", nil),
		plan.ReasonNotServed:      notServedError(secrets),
		plan.ReasonMailboxRefused: apierrors.NewForbidden(secrets, "a", errors.New("no")),
	} {
		if got := reasonOf(fmt.Errorf("cannot place it: %w", err)); got != reason {
			t.Errorf("%v: %s", err, got)
		}
		if failure := newFailure(err); failure.Reason != reason || failure.Message == "" || len(failure.Message) > 1024 {
			t.Errorf("%v: %+v", err, failure)
		}
	}
	terminating := apierrors.NewForbidden(secrets, "a", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, statusCause(corev1.NamespaceTerminatingCause))
	for err, want := range map[error]bool{terminating: true, apierrors.NewTooManyRequests("later", 1): true, errConflict: false} {
		if isTransient(err) != want {
			t.Errorf("%v: isTransient is %v", err, !want)
		}
	}
}

func statusCause(cause metav1.CauseType) metav1.StatusCause { return metav1.StatusCause{Type: cause} }

func TestFreedNamesEnqueueWaitingPairs(t *testing.T) {
	names := newTestShared(func(*Options) {}).names
	key := objectKey{resource: configMapsResource}
	name := pairAt(key, "m")
	asked := map[logicalcluster.Name]int{}
	wake := func() {
		names.wake(name.copyKey(), func(workspace logicalcluster.Name) *workspace { asked[workspace]++; return nil })
	}
	wake()
	names.set(name, "a", true)
	names.set(name, "a", true)
	names.set(name, "b", true)
	wake()
	names.set(name, "a", false)
	names.set(name, "c", false)
	wake()
	names.set(name, "b", false)
	wake()
	if asked["a"] != 1 || asked["b"] != 2 || asked["c"] != 0 || len(names.waiting) != 0 {
		t.Errorf("%v, %v", asked, names.waiting)
	}
}
