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
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// action is the action in all events, which the events.k8s.io API requires.
const action = "Publish"

// maxMessageBytes limits the length of a message; the API server accepts 1024 bytes.
const maxMessageBytes = 1000

// RecordCondition records an event if the status or the reason of the condition differs from before, which may be nil. The
// event is normal if the status is True, and a warning otherwise.
func RecordCondition(recorder events.EventRecorder, resource *synchubv1alpha1.PublishedResource, before []metav1.Condition, conditionType string) {
	now := meta.FindStatusCondition(resource.Status.Conditions, conditionType)
	old := meta.FindStatusCondition(before, conditionType)
	if now == nil || old != nil && old.Status == now.Status && old.Reason == now.Reason {
		return
	}
	eventType := corev1.EventTypeWarning
	if now.Status == metav1.ConditionTrue {
		eventType = corev1.EventTypeNormal
	}
	Record(recorder, resource, eventType, now.Reason, now.Message)
}

// Record records an event on a PublishedResource.
func Record(recorder events.EventRecorder, resource *synchubv1alpha1.PublishedResource, eventType, reason, message string) {
	recorder.Eventf(resource, nil, eventType, reason, action, "%s", truncate(message))
}

// truncate shortens a message to maxMessageBytes without cutting a character.
func truncate(message string) string {
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	if len(message) <= maxMessageBytes {
		return message
	}
	end := maxMessageBytes
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + "…"
}
