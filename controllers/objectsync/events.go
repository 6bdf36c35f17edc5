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
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	recordutil "k8s.io/client-go/tools/record/util"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// eventTimeout bounds the request for one event.
const eventTimeout = 10 * time.Second

var eventsResource = corev1.SchemeGroupVersion.WithResource("events")

// events writes events on mailbox objects; the caller sees to it that there is one per object and reason. client-go's recorder
// would need one broadcaster, with its goroutines and cache, per mailbox.
type events struct {
	mailboxes *mailboxes.Mailboxes
	mailbox   logicalcluster.Name
	clock     clock.Clock
}

// warn writes a warning about a failure of the object. If that fails it is only logged, because the status of the SyncerConfig
// reports the failure too.
func (e *events) warn(ctx context.Context, resource plan.Resource, object *unstructured.Unstructured, failure Failure) {
	client, ok := e.mailboxes.Client(e.mailbox)
	if !ok {
		return
	}
	event := eventFor(object, failure, metav1.NewTime(e.clock.Now()))
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Extra), eventTimeout)
	defer cancel()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event)
	if err == nil {
		_, err = client.Resource(eventsResource).Namespace(event.Namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	}
	if err != nil {
		log.FromContext(ctx).Info("cannot write an event to the mailbox", "resource", resource.Resource, "reason", failure.Reason, "error", err.Error())
	}
}

func eventFor(object *unstructured.Unstructured, failure Failure, now metav1.Time) *corev1.Event {
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		// Some object names are no legal names of events, such as that of the role system:node.
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: recordutil.GenerateEventName(object.GetName(), now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		},
		Reason:              failure.Reason,
		Message:             Truncate(failure.Message),
		Source:              corev1.EventSource{Component: "synchub"},
		ReportingController: "synchub",
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
		Type:                corev1.EventTypeWarning,
	}
}

// Truncate cuts a message to the 1024 bytes that the API server takes, and never inside a character.
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
