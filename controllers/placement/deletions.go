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

package placement

import (
	gosync "sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// deletions contains the deletion options of deleted objects, except the default: the cache drops the options
// with the object. It has its own lock, since the event handler of all workspaces takes it.
type deletions struct {
	lock    gosync.Mutex
	options map[objectKey]metav1.DeletionPropagation
}

// record records the deletion option of an object from an event. The caller must enqueue the object afterwards:
// the task drops the options that no copy needs.
func (d *deletions) record(key objectKey, event mailboxes.Event) {
	propagation := metav1.DeletePropagationBackground
	switch {
	case event.New == nil:
		propagation = plan.PropagationOf(event.Old)
	case event.New.GetDeletionTimestamp() != nil:
		propagation = plan.PropagationOf(event.New)
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	if propagation == metav1.DeletePropagationBackground {
		delete(d.options, key)
		return
	}
	if d.options == nil {
		d.options = map[objectKey]metav1.DeletionPropagation{}
	}
	d.options[key] = propagation
}

// get returns the deletion option of an object; nil for the default.
func (d *deletions) get(key objectKey) *metav1.DeletionPropagation {
	d.lock.Lock()
	defer d.lock.Unlock()
	if propagation, ok := d.options[key]; ok {
		return &propagation
	}
	return nil
}

// forget drops the deletion option of an object without copies.
func (d *deletions) forget(key objectKey) {
	d.lock.Lock()
	defer d.lock.Unlock()
	delete(d.options, key)
}
