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

package events

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
)

// WarnSyncTarget writes a warning about a SyncTarget into its workspace, unless an equal event exists. client-go's recorder
// would need one broadcaster per workspace, and forgets past events when another replica becomes the leader.
func WarnSyncTarget(ctx context.Context, inventory client.Client, clock clock.PassiveClock, syncTarget *edgev2alpha1.SyncTarget, reason, message string) error {
	now := metav1.NewTime(clock.Now())
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", syncTarget.UID, reason, message))
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%.200s.%x", syncTarget.Name, sum[:8])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncTarget", Name: syncTarget.Name, UID: syncTarget.UID,
		},
		Reason: reason, Message: objectsync.Truncate(message), Type: corev1.EventTypeWarning,
		Source: corev1.EventSource{Component: "synchub"}, ReportingController: "synchub",
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if err := inventory.Create(ctx, event); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot write an event on the SyncTarget %s: %w", syncTarget.Name, err)
	}
	return nil
}
