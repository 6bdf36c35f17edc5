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

package apiexport

import (
	"context"
	"fmt"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// annotationClaimsRetriedAt on the mailbox export is the last time at which the hub made kcp process the bindings of all
// mailboxes again.
const annotationClaimsRetriedAt = "synchub.dev/claims-retried-at"

const (
	// minClaimRetryInterval is how long kcp may take to accept the export's claims in all mailboxes before the first retry.
	// Each further retry for the same claims waits twice as long, up to maxClaimRetryInterval: kcp processes every logical
	// cluster each time.
	minClaimRetryInterval = 5 * time.Second
	maxClaimRetryInterval = time.Hour
)

// claimRetrier decides when the hub retries claims that kcp has not accepted in every mailbox.
//
// kcp accepts claims in default bindings once per change of the export. If a binding changes at the same moment, kcp logs
// the conflict and does not try again (kcp v0.31.2, pkg/reconciler/tenancy/defaultapibindinglifecycle). That mailbox would
// not have the API until the export changes for another reason.
type claimRetrier struct {
	// generation is the generation of the export that is being retried. No retry is due before next, and pause is the
	// current interval.
	generation int64
	pause      time.Duration
	next       time.Time
}

// isDue reports whether a retry for the given generation of the export is due, and after which delay to call it
// again. A new generation starts with minClaimRetryInterval.
func (r *claimRetrier) isDue(generation int64, now time.Time) (isDue bool, requeueAfter time.Duration) {
	switch {
	case r.generation != generation:
		*r = claimRetrier{generation: generation, pause: minClaimRetryInterval}
	case now.Before(r.next):
		return false, r.next.Sub(now)
	default:
		isDue, r.pause = true, min(2*r.pause, maxClaimRetryInterval)
	}
	r.next = now.Add(r.pause)
	return isDue, r.pause
}

// retryClaims annotates the export if some mailboxes have claims that kcp neither accepted nor rejected, which makes kcp
// process all bindings again. It returns when to check again, or zero if no cached mailbox has such a claim.
func (c *Controller) retryClaims(ctx context.Context, export *apisv1alpha2.APIExport) (requeueAfter time.Duration, err error) {
	unclaimed := c.Mailboxes.CountPendingClaims(export.Spec.PermissionClaims)
	if unclaimed == 0 {
		return 0, nil
	}
	now := c.Clock.Now()
	isDue, requeueAfter := c.claimRetrier.isDue(export.Generation, now)
	if !isDue {
		return requeueAfter, nil
	}
	log.FromContext(ctx).Info("kcp has not accepted the claims of the export in some mailboxes, requesting it again", "export", c.Export, "mailboxes", unclaimed)
	changed := export.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, annotationClaimsRetriedAt, now.UTC().Format(time.RFC3339Nano))
	if err := c.Provider.GetClient().Patch(ctx, changed, client.MergeFrom(export)); err != nil {
		return 0, fmt.Errorf("cannot annotate the APIExport %s: %w", c.Export, err)
	}
	return requeueAfter, nil
}
