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

package status_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
)

// fakeRecorder holds the recorded events, as "type reason message".
type fakeRecorder []string

func (n *fakeRecorder) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	if regarding.(*synchubv1alpha1.PublishedResource).Name != "a" || action == "" || note != "%s" || len(args) != 1 {
		panic("odd event")
	}
	*n = append(*n, eventType+" "+reason+" "+args[0].(string))
}

func TestRecordConditionEvent(t *testing.T) {
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
		"removed":         {[]metav1.Condition{before}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var recorded fakeRecorder
			resource := &synchubv1alpha1.PublishedResource{}
			resource.Name, resource.Status.Conditions = "a", test.now
			status.RecordConditionEvent(&recorded, resource, test.before, "Ready")
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
		status.RecordEvent(&recorded, resource, corev1.EventTypeNormal, "R", message)
		return strings.TrimPrefix(recorded[0], "Normal R ")
	}
	for _, character := range []string{"a", "é", "語", "🙂"} {
		message := recordedOf("x" + strings.Repeat(character, 1100))
		if len(message) > 1024 || len(message) < 990 || !utf8.ValidString(message) || !strings.HasSuffix(message, "…") {
			t.Errorf("%q: %d bytes, %q", character, len(message), message)
		}
	}
	if message := recordedOf("a\xffb"); message != "a\uFFFDb" {
		t.Errorf("a message that is not UTF-8: %q", message)
	}
}

func TestTruncate(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"nothing":               {"", ""},
		"short":                 {"a failure", "a failure"},
		"as long as it may be":  {strings.Repeat("a", 1000), strings.Repeat("a", 1000)},
		"a byte too long":       {strings.Repeat("a", 1001), strings.Repeat("a", 1000) + "…"},
		"a rune at the limit":   {strings.Repeat("a", 998) + "éé", strings.Repeat("a", 998) + "é…"},
		"a rune over the limit": {strings.Repeat("a", 999) + "é", strings.Repeat("a", 999) + "…"},
		"long runes":            {strings.Repeat("🛳", 300), strings.Repeat("🛳", 250) + "…"},
		"long runes, shifted":   {"a" + strings.Repeat("🛳", 300), "a" + strings.Repeat("🛳", 249) + "…"},
		"not text":              {"a\xff" + strings.Repeat("b", 10), "a\uFFFD" + strings.Repeat("b", 10)},
		"not text, too long":    {strings.Repeat("\xff\xfe", 600), "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := status.Truncate(test.message); got != test.want {
				t.Errorf("want %d bytes ending in %q, got %d ending in %q", len(test.want), end(test.want), len(got), end(got))
			}
		})
	}
}

func end(text string) string { return text[max(0, len(text)-8):] }

func FuzzTruncate(f *testing.F) {
	f.Add("a", 1, "é", 600)
	f.Add("", 0, "🛳", 300)
	f.Add("aaa", 333, "\xe2\x82", 3)
	f.Fuzz(func(t *testing.T, head string, heads int, tail string, tails int) {
		message := strings.Repeat(head, max(0, heads%2000)) + strings.Repeat(tail, max(0, tails%2000))
		if len(message) > 1<<20 {
			return
		}
		got := status.Truncate(message)
		if len(got) > 1024 {
			t.Errorf("%d bytes are too many", len(got))
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q is not text any more", got)
		}
		if utf8.ValidString(message) && !strings.HasPrefix(message, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q is not the beginning of the message", got)
		}
		if utf8.ValidString(message) && len(message) <= 1000 && got != message {
			t.Errorf("a message that fits was changed: %q", got)
		}
	})
}
