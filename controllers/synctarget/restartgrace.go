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
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// staleHeartbeatAge is how old a heartbeat may be for what the hub before has reported to count still.
	staleHeartbeatAge = 2 * time.Minute
	// restartGracePeriod is how long a hub looks at a target before it says that it does not know, if the one before is long gone.
	restartGracePeriod = 10 * time.Second
	// countRetryInterval is how soon it is tried again to count objects that are not known yet.
	countRetryInterval = 5 * time.Second
)

// pendingReasons are the reasons of conditions of which this hub does not know more yet.
var pendingReasons = []string{targets.ReasonConnecting, ReasonStarting, ReasonUnknownPermissions}

// restartGrace returns for how long a condition is left as the hub before has written it, since this hub has only begun to look
// and would say no more than that. So a restart or a change of the leader is no change of a thousand statuses, and yet none
// is green for long because nobody looks.
func restartGrace(stored *metav1.Condition, next metav1.Condition, heartbeat *metav1.Time, since, now time.Time) time.Duration {
	if stored == nil || !slices.Contains(pendingReasons, next.Reason) || !stored.LastTransitionTime.Time.Before(since.Truncate(time.Second)) {
		return 0
	}
	until := since.Add(restartGracePeriod)
	if heartbeat != nil {
		until = latest(until, earliest(heartbeat.Add(staleHeartbeatAge), since.Add(staleHeartbeatAge)))
		if next.Reason != targets.ReasonConnecting {
			// The heartbeat goes on meanwhile.
			until = since.Add(staleHeartbeatAge)
		}
	}
	return max(until.Sub(now), 0)
}

// throttleMessage leaves a condition's message as it is stored if nothing else has changed and words have changed within the last
// minute, and returns when they may: what a target says of its trouble can differ each time.
func (m *targetState) throttleMessage(stored, next *metav1.Condition, now time.Time) (requeueAfter time.Duration) {
	if stored == nil || stored.Status != next.Status || stored.Reason != next.Reason || stored.Message == next.Message {
		return 0
	}
	if wait := m.messageChangedAt.Add(heartbeatInterval).Sub(now); wait > 0 && !m.messageChangedAt.Equal(now) {
		next.Message = stored.Message
		return wait
	}
	m.messageChangedAt = now
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

// trustAfterRestart returns for how long what the hub before has found out about a target counts without being asked again, so that after
// a restart, or a change of the leader, what is to be synced comes first, and a fleet is not asked all at once. Nothing does if
// that hub is long gone, if not all was well, or if the SyncTarget has changed since. Led is when the hub before led last.
func trustAfterRestart(syncTarget *edgev2alpha1.SyncTarget, known ledger.Entry, led, since time.Time) syncmanager.Trust {
	if known.VerifiedGeneration == 0 || known.VerifiedGeneration != syncTarget.Generation || known.Cluster.ID == "" || led.IsZero() || since.Sub(led).Abs() > staleHeartbeatAge {
		return syncmanager.Trust{}
	}
	until := since.Add(restartGracePeriod + time.Duration(hashJitter(syncTarget.UID, "trust")*float64(heartbeatInterval)))
	return syncmanager.Trust{Until: until}
}

// firstHeartbeat is when a hub writes its first heartbeat of a target that has had one before: a fleet's are spread over the
// interval, else all were written together, each minute, ever after. It does not wait until the one before is stale, or none
// might be written by hubs that are started again and again.
func firstHeartbeat(syncTarget types.UID, since time.Time, before *metav1.Time) time.Time {
	first := since.Add(time.Duration(hashJitter(syncTarget, "heartbeat") * float64(heartbeatInterval)))
	if before == nil || since.Sub(before.Time) > staleHeartbeatAge {
		return first
	}
	return earliest(first, latestHeartbeat(before))
}

// latestHeartbeat is when the next heartbeat is written at the latest, zero if at once. Up to then it waits for the objects to be counted,
// since the counts are those of the heartbeat: a hub that has just begun has not seen them all.
func latestHeartbeat(before *metav1.Time) time.Time {
	if before == nil {
		return time.Time{}
	}
	return before.Add(staleHeartbeatAge - heartbeatInterval/2)
}

// withAdvice returns the health of a target with what to do about it.
func withAdvice(health targets.Health, syncTarget string) targets.Health {
	if health.Reason == targets.ReasonClusterChanged {
		health.Message = fmt.Sprintf("%s Nothing is synced. If that is meant, run `kubectl synchub confirm-cluster %s`; else put back the kubeconfig that was there before.", health.Message, syncTarget)
	}
	return health
}

// withTokenExpiry returns the health of a target in view of its token: one that is away past the token's end needs another.
func withTokenExpiry(health targets.Health, token targets.Token, hasToken bool, syncTarget string, now time.Time) targets.Health {
	if !hasToken || health.Up || now.Before(token.ExpiresAt) || health.Reason != targets.ReasonUnauthorized && health.Reason != targets.ReasonUnreachable {
		return withAdvice(health, syncTarget)
	}
	why := ""
	if health.Reason == targets.ReasonUnreachable {
		why = " The target could not be reached: " + health.Message
	}
	health.Reason = ReasonTokenExpired
	health.Message = fmt.Sprintf("The hub's token for the target ended at %s. Run `kubectl synchub rotate %s --target-kubeconfig FILE`, or put a kubeconfig with another into the Secret.%s",
		token.ExpiresAt.Format(dateFormat), syncTarget, why)
	return health
}
