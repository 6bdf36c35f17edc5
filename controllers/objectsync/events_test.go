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

package objectsync

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEventFor(t *testing.T) {
	now := metav1.NewTime(time.Unix(1, 5))
	object := &unstructured.Unstructured{Object: decode(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "till", "namespace": "shop", "uid": "u", "resourceVersion": "7"}}`)}
	got := eventFor(object, Failure{ReasonConflict, "taken"}, now)
	want := &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "till.3b9aca05"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "till", UID: "u", ResourceVersion: "7"},
		Reason:         "Conflict", Message: "taken", Type: "Warning", Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "synchub"}, ReportingController: "synchub",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("want %+v\ngot  %+v", want, got)
	}
}

// Whatever an object may be called, its event can be made, in a namespace where its reader looks.
func TestEventsOfAnyName(t *testing.T) {
	for _, name := range []string{"a", "system:node", "Shop.Reader", "a b", strings.Repeat("x", 253)} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}}
		object.SetName(name)
		event := eventFor(object, Failure{ReasonInvalid, strings.Repeat("é", 2000)}, metav1.NewTime(time.Unix(1, 5)))
		if problems := validation.NameIsDNSSubdomain(event.Name, false); len(problems) > 0 {
			t.Errorf("%q: the event's name %q is not legal: %v", name, event.Name, problems)
		}
		if event.Namespace != "default" || event.InvolvedObject.Name != name || event.InvolvedObject.Namespace != "" || len(event.Message) > 1024 {
			t.Errorf("%q: got %+v", name, event)
		}
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
			if got := Truncate(test.message); got != test.want {
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
		got := Truncate(message)
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
