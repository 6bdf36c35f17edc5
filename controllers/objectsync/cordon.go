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
	"k8s.io/apimachinery/pkg/types"
)

// isCordoned reports whether nothing new may be created on the target. Existing copies stay in sync.
func (c *Controller) isCordoned() bool { return c.Cordoned != nil && c.Cordoned() }

// Uncordon enqueues the objects that failed because of the cordon.
func (c *Controller) Uncordon() { c.retry(ReasonTargetCordoned) }

// RetryConflicts enqueues the objects whose name is taken, after the adoption policy has changed.
func (c *Controller) RetryConflicts() { c.retry(ReasonConflict) }

// retry enqueues all objects that failed for a reason.
func (c *Controller) retry(reason string) {
	c.enqueue(createPriority, c.states.failedKeys(func(_ types.NamespacedName, failure Failure) bool {
		return failure.Reason == reason
	})...)
}
