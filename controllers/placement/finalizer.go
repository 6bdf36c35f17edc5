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
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// finalizer keeps an EdgePlacement until its copies are withdrawn. Without the finalizer, once the binding or
// the workspace is gone, the hub could not distinguish a placement that a user deleted from one that kcp does
// not show. The hub exports EdgePlacements, so it can always remove the finalizer (see
// docs/design/0022-placement.md).
const finalizer = "synchub.dev/placement"

// addFinalizers adds the finalizer to placements that lack it, before any object is placed. It skips placements
// beyond the limits of the cache: they are not active, and their other finalizers may be unknown.
func (w *workspace) addFinalizers(ctx context.Context, observed []*unstructured.Unstructured) error {
	var errs []error
	for _, placement := range observed {
		if finalizers := placement.GetFinalizers(); mailboxes.ProjectionOf(placement) == mailboxes.FullObject && !slices.Contains(finalizers, finalizer) {
			errs = append(errs, w.setFinalizers(ctx, placement, append(slices.Clone(finalizers), finalizer)))
		}
	}
	return errors.Join(errs...)
}

// removeFinalizers removes the finalizer from deleted placements once no copy is left to withdraw. Copies in a
// mailbox whose inventory is not visible do not count: the hub cannot withdraw them, and keeps them. After a
// start, removeFinalizers waits until the hub knows all copies. Once the binding is gone, nobody could withdraw
// copies that appear later.
func (w *workspace) removeFinalizers(ctx context.Context) (requeueAfter time.Duration, err error) {
	listed, _ := w.Workloads.List(edgePlacements, w.cluster)
	deleted := slices.DeleteFunc(slices.Clone(listed), func(placement *unstructured.Unstructured) bool {
		return placement.GetDeletionTimestamp() == nil || !slices.Contains(placement.GetFinalizers(), finalizer)
	})
	w.lock.Lock()
	w.deleting = len(deleted) > 0
	w.lock.Unlock()
	if len(deleted) == 0 || w.isWithdrawing(w.Fleet.Snapshot()) {
		return 0, nil
	}
	switch {
	case w.knowsAllCopies(deleted):
	case w.inStartupGrace():
		return startupPoll, nil
	default:
		// A mailbox cannot be listed, perhaps for a long time.
		return unlistedPoll, nil
	}
	if w.isWithdrawing(w.Fleet.Snapshot()) {
		// A copy has appeared since.
		return 0, nil
	}
	var errs []error
	for _, placement := range deleted {
		errs = append(errs, w.setFinalizers(ctx, placement, slices.DeleteFunc(placement.GetFinalizers(), func(one string) bool { return one == finalizer })))
	}
	return 0, errors.Join(errs...)
}

// isWithdrawing reports whether the hub still has a copy to withdraw from a mailbox of the view.
func (w *workspace) isWithdrawing(view *fleet.Snapshot) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	for key, object := range w.objects {
		for mailbox, found := range object.pairs {
			if syncTarget, known := view.SyncTargetOf(mailbox); !found.desired && w.mayHaveCopy(pairKey{key, mailbox}, found) && known && !syncTarget.Terminating {
				return true
			}
		}
	}
	return false
}

// setFinalizers replaces the finalizers of a placement, unless it has changed since the cache read it.
func (w *workspace) setFinalizers(ctx context.Context, placement *unstructured.Unstructured, finalizers []string) error {
	err := w.placementWriter.SetFinalizers(ctx, keyOf(edgePlacements, placement), placement, finalizers)
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("cannot set the finalizers of the EdgePlacement %s: %w", placement.GetName(), err)
}
