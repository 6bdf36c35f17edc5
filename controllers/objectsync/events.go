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
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/internal/events"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// eventTimeout bounds the request for one event.
const eventTimeout = 10 * time.Second

var eventsResource = corev1.SchemeGroupVersion.WithResource("events")

// writeEvent writes a warning about a failure of the mailbox object; the caller sees to it that there is one per object and
// reason. If that fails it is only logged, because the status of the SyncerConfig reports the failure too.
func (c *Controller) writeEvent(ctx context.Context, object *unstructured.Unstructured, failure Failure) {
	client, ok := c.Mailboxes.Client(c.Mailbox)
	if !ok {
		return
	}
	event := eventFor(object, failure, c.Clock.Now())
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Extra), eventTimeout)
	defer cancel()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event)
	if err == nil {
		_, err = client.Resource(eventsResource).Namespace(event.Namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	}
	if err != nil {
		log.FromContext(ctx).Info("cannot write an event to the mailbox", "resource", c.Resource.Resource, "reason", failure.Reason, "error", err.Error())
	}
}

func eventFor(object *unstructured.Unstructured, failure Failure, now time.Time) *corev1.Event {
	return events.Warning(corev1.ObjectReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}, failure.Reason, failure.Message, now)
}
