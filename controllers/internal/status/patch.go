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

package status

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/redact"
)

// conflictRetry is the requeue delay after a conflict; by then the cache has the newer object.
const conflictRetry = 200 * time.Millisecond

// Patch patches the status from stored to changed. Both must be copies of the cached object: Patch modifies them.
func Patch(ctx context.Context, cluster client.Client, stored, changed client.Object) (reconcile.Result, error) {
	truncateMessages(changed)
	return PatchResult(cluster.Status().Patch(ctx, changed, mergePatch(stored, changed)))
}

// maxMessage limits the messages of conditions and resources. API servers accept 32 KiB for a condition or 4 KiB for a
// resource, and refuse the whole status beyond that.
const maxMessage = 4 << 10

// truncateMessages truncates the messages of conditions and resources that are too long.
func truncateMessages(object client.Object) {
	var conditions []metav1.Condition
	switch known := object.(type) {
	case *edgev2alpha1.SyncTarget:
		conditions = known.Status.Conditions
		for i := range known.Status.SyncedResources {
			cutMessage(&known.Status.SyncedResources[i].Message)
		}
	case *edgev2alpha1.Location:
		conditions = known.Status.Conditions
	case *synchubv1alpha1.PublishedResource:
		conditions = known.Status.Conditions
	}
	for i := range conditions {
		cutMessage(&conditions[i].Message)
	}
}

func cutMessage(message *string) {
	if len(*message) > maxMessage {
		*message = redact.Truncate(*message, maxMessage)
	}
}

// PatchObject patches metadata and spec from stored to changed. Both must be copies of the cached object: PatchObject modifies them.
func PatchObject(ctx context.Context, cluster client.Client, stored, changed client.Object) (reconcile.Result, error) {
	return PatchResult(cluster.Patch(ctx, changed, mergePatch(stored, changed)))
}

// mergePatch returns the merge patch from stored to changed. It drops managedFields, which make up half of many objects and
// never change.
func mergePatch(stored, changed client.Object) client.Patch {
	stored.SetManagedFields(nil)
	changed.SetManagedFields(nil)
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}

// PatchResult turns a conflict into a requeue, and ignores NotFound.
func PatchResult(err error) (reconcile.Result, error) {
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	default:
		return reconcile.Result{}, fmt.Errorf("cannot write the change: %w", err)
	}
}
