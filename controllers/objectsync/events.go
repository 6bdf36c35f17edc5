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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/internal/events"
)

// writeEvent writes a warning about a failure of the mailbox object; the caller sees to it that there is one per object and
// reason. If that fails it is only logged, because the status of the SyncerConfig reports the failure too.
func (c *Controller) writeEvent(ctx context.Context, object *unstructured.Unstructured, failure Failure) {
	client, ok := c.Mailboxes.Client(c.Mailbox)
	if !ok {
		return
	}
	if err := events.WarnObject(ctx, client, object, failure.Reason, failure.Message, c.Clock.Now()); err != nil {
		log.FromContext(ctx).Info("cannot write an event to the mailbox", "resource", c.Resource.Resource, "reason", failure.Reason, "error", err.Error())
	}
}
