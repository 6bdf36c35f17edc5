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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

// objectTimeout bounds the request for one event.
const objectTimeout = 10 * time.Second

var eventsResource = corev1.SchemeGroupVersion.WithResource("events")

// WarnObject writes a warning about an object into its workspace. The caller makes sure that it writes one per
// object and reason.
func WarnObject(ctx context.Context, workspace dynamic.Interface, object *unstructured.Unstructured, reason, message string, now time.Time) error {
	event := objectWarning(object, reason, message, now)
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Extra), objectTimeout)
	defer cancel()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event)
	if err == nil {
		_, err = workspace.Resource(eventsResource).Namespace(event.Namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("cannot write an event on %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func objectWarning(object *unstructured.Unstructured, reason, message string, now time.Time) *corev1.Event {
	return newWarning(corev1.ObjectReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}, reason, message, now)
}
