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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestObjectEvent(t *testing.T) {
	now := time.Unix(1, 5)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "till", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
	}}
	got := objectEvent(object, Event{"Warning", "Conflict", "taken"}, now)
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
		event := objectEvent(object, Event{"Warning", "Invalid", strings.Repeat("é", 2000)}, time.Unix(1, 5))
		if problems := validation.NameIsDNSSubdomain(event.Name, false); len(problems) > 0 {
			t.Errorf("%q: the event's name %q is not legal: %v", name, event.Name, problems)
		}
		if event.Namespace != "default" || event.InvolvedObject.Name != name || event.InvolvedObject.Namespace != "" || len(event.Message) > 1024 {
			t.Errorf("%q: got %+v", name, event)
		}
	}
}

// An event that is written again for the same occurrence has the same name, which kcp refuses.
func TestOccurrencesAreWrittenOnce(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "till", "namespace": "shop", "uid": "u"}}}
	workspace := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{eventsResource: "EventList"})
	for i, occurrence := range []string{"1", "1", "2", "1"} {
		if err := RecordObject(t.Context(), workspace, object, Event{"Warning", "Conflict", "taken"}, time.Unix(int64(i), 0), occurrence); err != nil {
			t.Error(err)
		}
	}
	if err := WarnObject(t.Context(), workspace, object, "Conflict", "taken", time.Unix(9, 0)); err != nil {
		t.Error(err)
	}
	list, err := workspace.Resource(eventsResource).Namespace("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Errorf("%+v: %v", list, err)
	}
}

// kcp does not create the namespace default, in which events about cluster-scoped objects must be. If the hub may not create it either, there is
// no event.
func TestNamespaceOfEventsIsCreated(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement", "metadata": map[string]any{"name": "shop", "uid": "u"}}}
	for _, mayCreate := range []bool{true, false} {
		workspace := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
		exists, requests := false, 0
		workspace.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			requests++
			switch isNamespace := action.GetResource() == namespacesResource; {
			case isNamespace && mayCreate:
				exists = true
			case isNamespace:
				return true, nil, apierrors.NewForbidden(namespacesResource.GroupResource(), "default", nil)
			case !exists:
				return true, nil, apierrors.NewNotFound(namespacesResource.GroupResource(), "default")
			}
			return false, nil, nil
		})
		err := RecordObject(t.Context(), workspace, object, Event{"Normal", "Placed", "m"}, time.Unix(1, 0), "1")
		if (err == nil) != mayCreate || (requests == 3) != mayCreate {
			t.Errorf("it may create: %v, %d requests, %v", mayCreate, requests, err)
		}
	}
}
