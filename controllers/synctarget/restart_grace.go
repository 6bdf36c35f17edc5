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
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

const (
	// staleHeartbeatAge is how old a heartbeat may be for the findings of the previous leader to count.
	staleHeartbeatAge = 2 * time.Minute
	// restartGracePeriod is how long a starting hub keeps the stored conditions of a target if the previous
	// leader ended long ago.
	restartGracePeriod = 10 * time.Second
	// countRetryInterval is when the hub tries again to count objects that it has not all observed yet.
	countRetryInterval = 5 * time.Second
)

// pendingReasons are the reasons of conditions that this replica has not determined yet.
var pendingReasons = []string{targets.ReasonConnecting, ReasonStarting, ReasonUnknownPermissions}

// restartGrace returns how long the hub keeps a condition of the previous leader, while this replica only has a
// pending reason. Otherwise a restart or a change of the leader would change the statuses of a whole fleet. The
// time is short, so that no condition stays True for long while no hub observes the target.
func restartGrace(stored *metav1.Condition, next metav1.Condition, heartbeat *metav1.Time, since, now time.Time) time.Duration {
	if stored == nil || !slices.Contains(pendingReasons, next.Reason) || !stored.LastTransitionTime.Time.Before(since.Truncate(time.Second)) {
		return 0
	}
	until := since.Add(restartGracePeriod)
	if heartbeat != nil {
		until = latest(until, earliest(heartbeat.Add(staleHeartbeatAge), since.Add(staleHeartbeatAge)))
		if next.Reason != targets.ReasonConnecting {
			// The heartbeat continues during that time, so its age is no evidence about this condition.
			until = since.Add(staleHeartbeatAge)
		}
	}
	return max(until.Sub(now), 0)
}

// throttleMessage keeps the stored message of a condition if only the message differs and was last changed
// within a minute. It returns when the message may change. A target may word the same problem differently in
// each response.
func (s *syncTargetState) throttleMessage(stored, next *metav1.Condition, now time.Time) (requeueAfter time.Duration) {
	if stored == nil || stored.Status != next.Status || stored.Reason != next.Reason || stored.Message == next.Message {
		return 0
	}
	if wait := s.messageChangedAt.Add(heartbeatInterval).Sub(now); wait > 0 && !s.messageChangedAt.Equal(now) {
		next.Message = stored.Message
		return wait
	}
	s.messageChangedAt = now
	return 0
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// trustAfterRestart returns until when the findings of the previous leader about a target count without a
// request to the target. So after a restart, or a change of the leader, the hub syncs first and does not query
// the whole fleet at once. It returns zero if the previous leader ended long ago or had not verified the
// SyncTarget, or if the SyncTarget has changed. led is when the previous leader was last active.
func trustAfterRestart(syncTarget *edgev2alpha1.SyncTarget, known ledger.Entry, led, since time.Time) time.Time {
	if known.VerifiedGeneration == 0 || known.VerifiedGeneration != syncTarget.Generation || known.Cluster.ID == "" || led.IsZero() || since.Sub(led).Abs() > staleHeartbeatAge {
		return time.Time{}
	}
	until := since.Add(restartGracePeriod + time.Duration(hashJitter(syncTarget.UID, "trust")*float64(heartbeatInterval)))
	return until
}

// firstHeartbeat returns when this replica writes its first heartbeat of a target that already has one. It spreads the heartbeats of a
// fleet over the interval; otherwise the hub would write them all together, every minute. It does not wait until the stored
// heartbeat is stale, because hubs that restart often might then never write one.
func firstHeartbeat(syncTarget types.UID, since time.Time, before *metav1.Time) time.Time {
	first := since.Add(time.Duration(hashJitter(syncTarget, "heartbeat") * float64(heartbeatInterval)))
	if before == nil || since.Sub(before.Time) > staleHeartbeatAge {
		return first
	}
	return earliest(first, latestHeartbeat(before))
}

// latestHeartbeat returns the latest time for the next heartbeat, zero if it is due at once. Until then a heartbeat waits for the
// counts that it carries: a hub that has just started has not observed all objects.
func latestHeartbeat(before *metav1.Time) time.Time {
	if before == nil {
		return time.Time{}
	}
	return before.Add(staleHeartbeatAge - heartbeatInterval/2)
}

// withAdvice returns health, and adds to the message of ReasonClusterChanged the steps that an operator can take.
func withAdvice(health targets.Health, syncTarget string) targets.Health {
	if health.Reason == targets.ReasonClusterChanged {
		health.Message = fmt.Sprintf("%s Nothing is synced. If that is meant, run `kubectl synchub confirm-cluster %s`; else put back the kubeconfig of the cluster before.", health.Message, syncTarget)
	}
	return health
}

// withTokenExpiry returns health with ReasonTokenExpired if the target is unauthorized or unreachable and its token has ended.
func withTokenExpiry(health targets.Health, token kubeconfig.Token, hasToken bool, syncTarget string, now time.Time) targets.Health {
	if !hasToken || health.Up || now.Before(token.ExpiresAt) || health.Reason != targets.ReasonUnauthorized && health.Reason != targets.ReasonUnreachable {
		return withAdvice(health, syncTarget)
	}
	cause := ""
	if health.Reason == targets.ReasonUnreachable {
		cause = " The target could not be reached: " + health.Message
	}
	health.Reason = ReasonTokenExpired
	health.Message = fmt.Sprintf("The hub's token for the target ended at %s. Run `kubectl synchub rotate %s --target-kubeconfig FILE`, or put a kubeconfig with another into the Secret.%s",
		token.ExpiresAt.Format(dateFormat), syncTarget, cause)
	return health
}
