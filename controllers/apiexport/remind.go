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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// annotationRemindedAt is on the mailbox export: when kcp was last made to look at the bindings of all mailboxes again.
const annotationRemindedAt = "synchub.dev/reminded-at"

const (
	// firstReminder is how long kcp may take to accept the claims of the export in all mailboxes before it is reminded. Each
	// further reminder of the same claims waits twice as long, up to lastReminder: kcp looks at every logical cluster each time.
	firstReminder = 5 * time.Second
	lastReminder  = time.Hour
)

// reminder decides when kcp is to be reminded of the claims that it has not accepted in every mailbox.
//
// kcp accepts claims in default bindings once per change of the export. If a binding changes at the same moment, kcp logs the
// conflict and does not try again (kcp v0.31.2, pkg/reconciler/tenancy/defaultapibindinglifecycle). That mailbox would not have
// the API until the export changes for another reason.
type reminder struct {
	// generation is the export's of which the reminder speaks, pause how long to wait before next.
	generation int64
	pause      time.Duration
	next       time.Time
}

// due tells whether kcp is to be reminded now of the claims of a generation, and when to ask again.
func (r *reminder) due(generation int64, now time.Time) (isDue bool, again time.Duration) {
	switch {
	case r.generation != generation:
		*r = reminder{generation: generation, pause: firstReminder}
	case now.Before(r.next):
		return false, r.next.Sub(now)
	default:
		isDue, r.pause = true, min(2*r.pause, lastReminder)
	}
	r.next = now.Add(r.pause)
	return isDue, r.pause
}

// remind makes kcp accept the export's claims in the mailboxes in which it has not, and returns when to look again; zero if they
// are accepted, or rejected, in all that can be seen.
func (c *Controller) remind(ctx context.Context, export *apisv1alpha2.APIExport) (again time.Duration, err error) {
	unclaimed := c.Mailboxes.Unclaimed(export.Spec.PermissionClaims)
	if unclaimed == 0 {
		return 0, nil
	}
	now := c.Clock.Now()
	isDue, again := c.reminder.due(export.Generation, now)
	if !isDue {
		return again, nil
	}
	log.FromContext(ctx).Info("kcp has not accepted the claims of the export in some mailboxes, it is reminded", "export", c.Export, "mailboxes", unclaimed)
	changed := export.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[annotationRemindedAt] = now.UTC().Format(time.RFC3339Nano)
	if err := c.Provider.GetClient().Patch(ctx, changed, client.MergeFrom(export)); err != nil {
		return 0, fmt.Errorf("cannot annotate the APIExport %s: %w", c.Export, err)
	}
	return again, nil
}
