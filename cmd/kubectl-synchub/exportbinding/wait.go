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

package exportbinding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// servedInterval is the interval at which a bound API is requested until kcp serves it. There is no event for that.
const servedInterval = 200 * time.Millisecond

// errDeleted means that the awaited object was deleted during the wait.
var errDeleted = errors.New("it was deleted during the wait")

// isBound returns "" if kcp has bound the APIs, or else the missing step.
func isBound(binding *apisv1alpha2.APIBinding) string {
	if binding.Status.Phase == apisv1alpha2.APIBindingPhaseBound {
		return ""
	}
	return "is not bound"
}

// isApplied returns "" if kcp has applied all accepted claims, or else the missing step.
func isApplied(binding *apisv1alpha2.APIBinding) string {
	if unapplied := unappliedClaims(binding); len(unapplied) > 0 {
		return "has unapplied claims on " + strings.Join(unapplied, ", ")
	}
	return ""
}

// awaitBinding waits until the missing step of the APIBinding is "", and sets binding to its last state. waiting ends with
// the timeout, and ctx when the user interrupts the command.
func (b *Binder) awaitBinding(ctx, waiting context.Context, binding *apisv1alpha2.APIBinding, missing func(*apisv1alpha2.APIBinding) string) error {
	err := registration.WatchObject(waiting, b.Client, binding, func(current *apisv1alpha2.APIBinding) (bool, error) {
		if current == nil || current.UID != binding.UID {
			return false, errDeleted
		}
		current.DeepCopyInto(binding)
		return missing(binding) == "", nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil:
		return fmt.Errorf("the APIBinding %s %s after %s:%s\nRun the command again when that is solved", binding.Name, missing(binding), b.Timeout, describeConditions(binding))
	default:
		return fmt.Errorf("cannot wait for the APIBinding %s: %w", binding.Name, err)
	}
}

// describeConditions returns a line for each condition that is not true.
func describeConditions(binding *apisv1alpha2.APIBinding) string {
	var lines strings.Builder
	for _, condition := range binding.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			fmt.Fprintf(&lines, "\n%s is %s, %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	if lines.Len() == 0 {
		return " kcp has reported no reason"
	}
	return lines.String()
}

// awaitServed waits until the workspace serves the APIs.
func (b *Binder) awaitServed(ctx, waiting context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(waiting, servedInterval, true, func(ctx context.Context) (bool, error) {
		last = b.Client.List(ctx, b.NewList(), client.Limit(1))
		if meta.IsNoMatchError(last) || apierrors.IsNotFound(last) || apierrors.IsServiceUnavailable(last) {
			return false, nil
		}
		return last == nil, last
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil:
		return fmt.Errorf("the APIBinding is bound, but the workspace did not serve %s after %s; run the command again: %w", b.Kinds, b.Timeout, last)
	default:
		return fmt.Errorf("cannot list the %s of the workspace: %w", b.Kinds, err)
	}
}
