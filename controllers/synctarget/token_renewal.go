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

package synctarget

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

const (
	// renewalRetryInterval is the delay after a failed renewal, jittered by up to a fifth. The delay is shorter if the token ends
	// before that.
	renewalRetryInterval = 10 * time.Minute
	// renewalCooldown is the delay after a successful renewal. By then the connection uses the new token.
	renewalCooldown = time.Minute
	dateFormat      = time.RFC3339
)

// renewal is the result of the last attempt to renew a token.
type renewal struct {
	// nextAttempt is the earliest time for another attempt.
	nextAttempt time.Time
	// renewedAt is when the last successful attempt was made.
	renewedAt time.Time
	// problem is why the last attempt failed.
	problem string
}

// hashJitter returns a number in [0, 1) that is constant for a SyncTarget and purpose, and spread evenly over SyncTargets.
func hashJitter(syncTarget types.UID, purpose string) float64 {
	sum := fnv.New64a()
	fmt.Fprint(sum, syncTarget, purpose)
	return float64(sum.Sum64()>>11) / (1 << 53)
}

// renewalDue returns when a token must be renewed: when a third of its lifetime is left, or up to a fifteenth
// of the lifetime earlier. The jitter keeps SyncTargets that were registered together from renewing together.
func renewalDue(token kubeconfig.Token, syncTarget types.UID) time.Time {
	left := float64(token.Lifetime()) / 3 * (1 + hashJitter(syncTarget, "renewal")/5)
	return token.ExpiresAt.Add(-time.Duration(left))
}

// retryAfter returns the delay before the next attempt, given the time until the token ends.
func retryAfter(syncTarget types.UID, left time.Duration) time.Duration {
	wait := time.Duration(float64(renewalRetryInterval) * (1 + (hashJitter(syncTarget, "retry")-0.5)/2.5))
	return max(min(wait, left/4), 10*time.Second)
}

// renewToken replaces the token in the kubeconfig Secret of the SyncTarget if that is due and the target is up. The event of the
// changed Secret makes Reconcile connect with the new token.
func (c *Controller) renewToken(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, connection *targets.Connection, state *syncTargetState) {
	if connection == nil {
		return
	}
	token, ok := connection.Token.Claims()
	now := c.Clock.Now()
	// The target sets the end of the token, and enforces it, by its own clock.
	targetNow := now.Add(connection.Health.ClockSkew())
	if !ok || targetNow.Before(renewalDue(token, syncTarget.UID)) {
		state.renewal.problem = ""
		return
	}
	if !connection.Health.IsUp() || now.Before(state.renewal.nextAttempt) {
		return
	}
	err := c.replaceToken(requestclass.With(ctx, requestclass.Background), inventory, syncTarget, connection, state)
	if errors.Is(err, targets.ErrPending) {
		// The response of the target enqueues the SyncTarget again.
		return
	}
	state.renewal.nextAttempt = now.Add(retryAfter(syncTarget.UID, token.ExpiresAt.Sub(targetNow)))
	switch {
	case apierrors.IsConflict(err) || errors.Is(err, targets.ErrKubeconfigChanged):
		// Another writer has just changed the Secret, perhaps to renew the token too.
		state.renewal.nextAttempt = now.Add(time.Second)
	case err != nil:
		state.renewal.problem = renewalFailureMessage(token, syncTarget.Name, err, connection.RedactError(err))
		log.FromContext(ctx).Info("the token was not renewed", "syncTarget", syncTarget.Name, "expiresAt", token.ExpiresAt, "error", connection.RedactError(err))
	default:
		state.renewal = renewal{nextAttempt: now.Add(renewalCooldown), renewedAt: now}
		log.FromContext(ctx).Info("the token was renewed", "syncTarget", syncTarget.Name)
	}
}

// replaceToken writes a new token into the Secret unless the Secret has changed since it was read. The error is
// [targets.ErrPending] until the target has answered.
func (c *Controller) replaceToken(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, connection *targets.Connection, state *syncTargetState) error {
	reference := secretReferenceOf(syncTarget)
	key := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
	stored, err := c.getSecret(ctx, inventory, syncTarget, reference, state)
	if err != nil {
		return fmt.Errorf("cannot read the Secret %s: %w", key, err)
	}
	if !kubeconfig.Allows(stored, syncTarget.Name, syncTarget.UID) {
		// An editor has just revoked the permission; the event of the changed Secret closes the connection.
		return fmt.Errorf("the Secret %s does not allow this SyncTarget any more: %w", key, targets.ErrKubeconfigChanged)
	}
	kubeconfig, err := connection.Token.RenewAsync(stored.Data[reference.Key])
	if err != nil {
		return err
	}
	changed := stored.DeepCopy()
	changed.Data[reference.Key] = kubeconfig
	if err := inventory.GetClient().Patch(ctx, changed, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})); err != nil {
		return &writeError{fmt.Errorf("cannot write it into the Secret %s: %w", key, err)}
	}
	return nil
}

// writeError is an error of kcp, as opposed to a refusal by the target.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// renewalFailureMessage returns when the token ends, why it was not renewed, and how an operator can replace
// it.
func renewalFailureMessage(token kubeconfig.Token, syncTarget string, err error, described string) string {
	ends := token.ExpiresAt.Format(dateFormat)
	if _, inventory := errors.AsType[*writeError](err); apierrors.IsForbidden(err) && !inventory {
		return fmt.Sprintf("The hub's token for the target ends at %s and cannot be renewed: allow its ServiceAccount %s/%s to create serviceaccounts/token for itself, "+
			"or run `kubectl synchub rotate %s --target-kubeconfig FILE`.", ends, token.Namespace, token.ServiceAccount, syncTarget)
	}
	return fmt.Sprintf("The hub's token for the target ends at %s and was not renewed yet: %s. This is tried again; `kubectl synchub rotate %s --target-kubeconfig FILE` gives another.", ends, described, syncTarget)
}
