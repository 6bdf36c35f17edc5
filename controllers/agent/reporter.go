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

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

const (
	// reportInterval is how often the agent writes its Lease when nothing has changed, and minReportInterval when something has.
	reportInterval    = 20 * time.Second
	minReportInterval = 2 * time.Second
	// claimPeriod is how long another cluster's report keeps this agent from the mailbox.
	claimPeriod = 2 * time.Minute
)

// ErrOtherCluster means that an agent in another cluster works with the same mailbox.
var ErrOtherCluster = errors.New("an agent in another cluster reports for this mailbox: register this cluster as a SyncTarget of its own")

// reporter writes reports into the Lease in the mailbox.
type reporter struct {
	leases     coordinationclient.LeaseInterface
	sealer     *ownership.Sealer
	mailbox    string
	syncTarget types.UID
	// cluster is the UID of the namespace kube-system.
	cluster string

	// lease is as it was read or written last, nil if it must be read.
	lease *coordinationv1.Lease
	// expected is the cluster that the SyncTarget stands for by the last assignment; empty before an agent has synced.
	expected string
	// last is the last report, written at lastAt. sequence is the highest one so far.
	last     *assignment.Report
	lastAt   time.Time
	sequence int64
}

// claim reads the Lease, and returns the last report; nil if there is none. The error is [ErrOtherCluster] while an agent in another
// cluster reports. The expected cluster need not wait for that: the other agent syncs nothing.
func (r *reporter) claim(ctx context.Context, now time.Time) (*assignment.Report, error) {
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Background), requestTimeout)
	defer cancel()
	lease, err := r.leases.Get(ctx, assignment.Lease, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the agent's Lease in the mailbox: %w", err)
	}
	last, err := assignment.OpenReport(r.sealer, r.mailbox, lease.Annotations[assignment.ReportAnnotation], lease.Annotations[assignment.SealAnnotation])
	if err != nil {
		// Somebody else wrote it, or nobody did.
		last = nil
	}
	if last != nil {
		if last.Cluster != r.cluster && r.expected != r.cluster && now.Sub(time.UnixMilli(last.Sequence)) < claimPeriod {
			return nil, ErrOtherCluster
		}
		r.sequence = max(r.sequence, last.Sequence)
	}
	r.lease = lease
	return last, nil
}

// write writes a report, if one is due.
func (r *reporter) write(ctx context.Context, report *assignment.Report, now time.Time) error {
	since := now.Sub(r.lastAt)
	if since < minReportInterval || since < reportInterval && r.last != nil && !differs(r.last, report) {
		return nil
	}
	if r.lease == nil {
		if _, err := r.claim(ctx, now); err != nil {
			return err
		}
	}
	report.Sequence, report.Mailbox, report.SyncTarget = max(r.sequence+1, now.UnixMilli()), r.mailbox, r.syncTarget
	text, seal, err := assignment.SealReport(r.sealer, report)
	if err != nil {
		return err
	}
	lease := r.lease.DeepCopy()
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[assignment.ReportAnnotation], lease.Annotations[assignment.SealAnnotation] = text, seal
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &r.cluster, &metav1.MicroTime{Time: now}
	lease.Spec.LeaseDurationSeconds = new(int32(claimPeriod / time.Second))
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Background), requestTimeout)
	defer cancel()
	written, err := r.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			r.lease = nil
		}
		return fmt.Errorf("cannot write the agent's Lease in the mailbox: %w", err)
	}
	r.lease, r.last, r.lastAt, r.sequence = written, report, now, report.Sequence
	return nil
}

// differs reports whether a report must not wait for the next heartbeat.
func differs(before, after *assignment.Report) bool {
	if before.Assignment != after.Assignment || before.Problem != after.Problem || before.Finished != after.Finished || before.Copies != after.Copies || len(before.Status.Conditions) != len(after.Status.Conditions) {
		return true
	}
	for _, kind := range []string{edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady, edgev2alpha1.ConditionSyncerAuthorized, edgev2alpha1.ConditionDrained} {
		was, is := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)
		if was == nil || is == nil {
			if was != is {
				return true
			}
			continue
		}
		if was.Status != is.Status || was.Reason != is.Reason || was.ObservedGeneration != is.ObservedGeneration {
			return true
		}
	}
	return false
}
