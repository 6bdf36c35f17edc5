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

package events_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/events"
)

// fakeRecorder holds the recorded events, as "type reason message".
type fakeRecorder []string

func (n *fakeRecorder) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	if regarding.(*synchubv1alpha1.PublishedResource).Name != "a" || action == "" || note != "%s" || len(args) != 1 {
		panic("odd event")
	}
	*n = append(*n, eventType+" "+reason+" "+args[0].(string))
}

func TestRecordCondition(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
	}
	before := condition("Ready", metav1.ConditionTrue, "Ready", "fine")
	for name, test := range map[string]struct {
		before, now []metav1.Condition
		want        []string
	}{
		"nothing":         {nil, nil, nil},
		"another type":    {nil, []metav1.Condition{condition("Exported", metav1.ConditionTrue, "A", "b")}, nil},
		"new":             {nil, []metav1.Condition{before}, []string{"Normal Ready fine"}},
		"as it was":       {[]metav1.Condition{before}, []metav1.Condition{before}, nil},
		"another message": {[]metav1.Condition{before}, []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Ready", "100% fine")}, nil},
		"another reason":  {[]metav1.Condition{before}, []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Other", "100% fine")}, []string{"Normal Other 100% fine"}},
		"another status":  {[]metav1.Condition{before}, []metav1.Condition{condition("Ready", metav1.ConditionFalse, "Ready", "no")}, []string{"Warning Ready no"}},
		"unknown":         {[]metav1.Condition{before}, []metav1.Condition{condition("Ready", metav1.ConditionUnknown, "Lost", "no")}, []string{"Warning Lost no"}},
		"of another type": {[]metav1.Condition{condition("Exported", metav1.ConditionTrue, "Ready", "fine")}, []metav1.Condition{before}, []string{"Normal Ready fine"}},
		"no longer there": {[]metav1.Condition{before}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var recorded fakeRecorder
			resource := &synchubv1alpha1.PublishedResource{}
			resource.Name, resource.Status.Conditions = "a", test.now
			events.RecordCondition(&recorded, resource, test.before, "Ready")
			if !slices.Equal(recorded, test.want) {
				t.Errorf("want %q, got %q", test.want, recorded)
			}
		})
	}
}

// API servers refuse an event whose message is too long or is not valid UTF-8.
func TestLongMessages(t *testing.T) {
	recordedOf := func(message string) string {
		var recorded fakeRecorder
		resource := &synchubv1alpha1.PublishedResource{}
		resource.Name = "a"
		events.Record(&recorded, resource, corev1.EventTypeNormal, "R", message)
		return strings.TrimPrefix(recorded[0], "Normal R ")
	}
	for _, character := range []string{"a", "é", "語", "🙂"} {
		message := recordedOf("x" + strings.Repeat(character, 1100))
		if len(message) > 1024 || len(message) < 990 || !utf8.ValidString(message) || !strings.HasSuffix(message, "…") {
			t.Errorf("%q: %d bytes, %q", character, len(message), message)
		}
	}
	if message := recordedOf("a\xffb"); message != "a\uFFFDb" {
		t.Errorf("what is no text: %q", message)
	}
}
