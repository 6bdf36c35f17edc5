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
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestObjectWarning(t *testing.T) {
	now := time.Unix(1, 5)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "till", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
	}}
	got := objectWarning(object, "Conflict", "taken", now)
	want := &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "till.3b9aca05"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "till", UID: "u", ResourceVersion: "7"},
		Reason:         "Conflict", Message: "taken", Type: "Warning", Count: 1, FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
		Source: corev1.EventSource{Component: "synchub"}, ReportingController: "synchub",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("want %+v\ngot  %+v", want, got)
	}
}

// An event can be created for an object with any name, in a namespace where users find it.
func TestEventsOfAnyName(t *testing.T) {
	for _, name := range []string{"a", "system:node", "Shop.Reader", "a b", strings.Repeat("x", 253)} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}}
		object.SetName(name)
		event := objectWarning(object, "Invalid", strings.Repeat("é", 2000), time.Unix(1, 5))
		if problems := validation.NameIsDNSSubdomain(event.Name, false); len(problems) > 0 {
			t.Errorf("%q: the event's name %q is not legal: %v", name, event.Name, problems)
		}
		if event.Namespace != "default" || event.InvolvedObject.Name != name || event.InvolvedObject.Namespace != "" || len(event.Message) > 1024 {
			t.Errorf("%q: got %+v", name, event)
		}
	}
}
