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
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	recordutil "k8s.io/client-go/tools/record/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// RecordConditionEvent records an event if the status or the reason of the condition differs from before, which may be nil. The
// event is normal if the status is True, and a warning otherwise.
func RecordConditionEvent(recorder events.EventRecorder, resource *synchubv1alpha1.PublishedResource, before []metav1.Condition, conditionType string) {
	now := meta.FindStatusCondition(resource.Status.Conditions, conditionType)
	old := meta.FindStatusCondition(before, conditionType)
	if now == nil || old != nil && old.Status == now.Status && old.Reason == now.Reason {
		return
	}
	eventType := corev1.EventTypeWarning
	if now.Status == metav1.ConditionTrue {
		eventType = corev1.EventTypeNormal
	}
	RecordEvent(recorder, resource, eventType, now.Reason, now.Message)
}

// RecordEvent records an event on a PublishedResource.
func RecordEvent(recorder events.EventRecorder, resource *synchubv1alpha1.PublishedResource, eventType, reason, message string) {
	// The events.k8s.io API requires an action.
	recorder.Eventf(resource, nil, eventType, reason, "Publish", "%s", Truncate(message))
}

// WarnSyncTarget writes a warning about a SyncTarget into its workspace, unless an equal event exists.
func WarnSyncTarget(ctx context.Context, inventory client.Client, now time.Time, syncTarget *edgev2alpha1.SyncTarget, reason, message string) error {
	return record(ctx, inventory, now, "SyncTarget", syncTarget, Event{corev1.EventTypeWarning, reason, message}, message)
}

// RecordSyncTarget writes an event about a SyncTarget into its workspace, unless one with its reason and its occurrence exists.
// occurrence identifies what happened among the events of one reason.
func RecordSyncTarget(ctx context.Context, inventory client.Client, now time.Time, syncTarget *edgev2alpha1.SyncTarget, event Event, occurrence string) error {
	return record(ctx, inventory, now, "SyncTarget", syncTarget, event, occurrence)
}

// WarnLocation writes a warning about a Location into its workspace, unless an equal event exists.
func WarnLocation(ctx context.Context, inventory client.Client, now time.Time, location *edgev2alpha1.Location, reason, message string) error {
	return record(ctx, inventory, now, "Location", location, Event{corev1.EventTypeWarning, reason, message}, message)
}

// Event is the content of an event. Type is Normal or Warning, Reason a constant, and Message for people.
type Event struct {
	Type, Reason, Message string
}

// record writes an event about an object of an inventory workspace. The name of the event follows from the object, the reason and the
// occurrence, so a repeated write does nothing.
func record(ctx context.Context, inventory client.Client, now time.Time, kind string, about client.Object, event Event, occurrence string) error {
	written := newEvent(corev1.ObjectReference{
		APIVersion: edgev2alpha1.GroupVersion.String(), Kind: kind, Name: about.GetName(), UID: about.GetUID(),
	}, event, now)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", about.GetUID(), event.Reason, occurrence))
	written.Name = fmt.Sprintf("%.200s.%x", about.GetName(), sum[:8])
	if err := inventory.Create(ctx, written); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot write an event on the %s %s: %w", kind, about.GetName(), err)
	}
	return nil
}

// newEvent returns an event about an object of a workspace, in the object's namespace, or else in the namespace default.
func newEvent(about corev1.ObjectReference, event Event, now time.Time) *corev1.Event {
	return &corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault),
			// Some object names, such as the role system:node, are not valid names of events.
			Name: recordutil.GenerateEventName(about.Name, now.UnixNano()),
		},
		InvolvedObject: about, Reason: event.Reason, Message: Truncate(event.Message), Type: event.Type,
		Source: corev1.EventSource{Component: "synchub"}, ReportingController: "synchub",
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), Count: 1,
	}
}

// Truncate returns at most 1000 bytes of a message and an ellipsis, and never cuts a character. API servers accept 1024 bytes.
func Truncate(message string) string {
	const limit = 1000
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	if len(message) <= limit {
		return message
	}
	end := limit
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + "…"
}
