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
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	recordutil "k8s.io/client-go/tools/record/util"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// objectTimeout bounds the request for one event.
const objectTimeout = 10 * time.Second

var (
	eventsResource     = corev1.SchemeGroupVersion.WithResource("events")
	namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// WarnObject writes a warning about an object into its workspace. The caller makes sure that it writes one per
// object and reason.
func WarnObject(ctx context.Context, workspace dynamic.Interface, object *unstructured.Unstructured, reason, message string, now time.Time) error {
	return RecordObject(ctx, workspace, object, Event{corev1.EventTypeWarning, reason, message}, now, "")
}

// RecordObject writes an event about an object into its workspace, unless one with its reason and its occurrence exists. occurrence
// identifies what happened; if it is empty, the caller makes sure that it writes one event.
func RecordObject(ctx context.Context, workspace dynamic.Interface, object *unstructured.Unstructured, event Event, now time.Time, occurrence string) error {
	written := objectEvent(object, event, now)
	if occurrence != "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", object.GetUID(), event.Reason, occurrence))
		written.Name = recordutil.GenerateEventName(object.GetName(), int64(binary.BigEndian.Uint64(sum[:])>>1))
	}
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Extra), objectTimeout)
	defer cancel()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(written)
	if err == nil {
		err = createEvent(ctx, workspace, &unstructured.Unstructured{Object: content})
	}
	if err == nil || occurrence != "" && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("cannot write an event on %s %s: %w", object.GetKind(), object.GetName(), err)
}

// createEvent creates an event, and first the namespace default if that is missing: kcp does not create it in new workspaces, but events
// about cluster-scoped objects must be there. No EdgePlacement places it.
func createEvent(ctx context.Context, workspace dynamic.Interface, event *unstructured.Unstructured) error {
	create := func() error {
		_, err := workspace.Resource(eventsResource).Namespace(event.GetNamespace()).Create(ctx, event, metav1.CreateOptions{})
		return err
	}
	err := create()
	if event.GetNamespace() != metav1.NamespaceDefault || !writes.IsMissingNamespace(err, metav1.NamespaceDefault) {
		return err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": metav1.NamespaceDefault}}}
	if _, err := workspace.Resource(namespacesResource).Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return create()
}

func objectEvent(object *unstructured.Unstructured, event Event, now time.Time) *corev1.Event {
	return newEvent(corev1.ObjectReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}, event, now)
}
