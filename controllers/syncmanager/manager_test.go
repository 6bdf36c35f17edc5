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

package syncmanager

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

func TestAssignKeepsWhatItHas(t *testing.T) {
	manager, _ := newManager(t)
	first, second := &targets.Connection{}, &targets.Connection{}
	manager.Assign(Target{UID: florin, Name: "florin", Mailbox: "m", Connection: first, Recorded: []schema.GroupResource{{Resource: "secrets"}}})
	learn(manager, selecting("configmaps"))
	manager.Assign(Target{UID: florin, Name: "florin", Mailbox: "m", Connection: second})
	found, _ := manager.get(florin)
	if found.describe().Connection != second || !reflect.DeepEqual(found.recorded, groups("secrets")) || !manager.Known(florin) {
		t.Errorf("got %+v", found)
	}
	manager.Resume("another")
	manager.Resume(florin)
}

func TestConfigEvents(t *testing.T) {
	config := func(generation int64) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGeneration(generation)
		return object
	}
	for name, test := range map[string]struct {
		event mailboxes.Event
		stale bool
	}{
		"a new config":     {mailboxes.Event{New: config(1)}, true},
		"a changed config": {mailboxes.Event{Old: config(1), New: config(2)}, true},
		"a config is gone": {mailboxes.Event{Old: config(1)}, true},
		"a written status": {mailboxes.Event{Old: config(1), New: config(1)}, false},
		"at the beginning": {mailboxes.Event{New: config(1), Initial: true}, true},
	} {
		manager, _ := newManager(t)
		manager.Assign(Target{UID: florin, Mailbox: "m"})
		learn(manager, nil)
		found, _ := manager.get(florin)
		subscriber := &configSubscriber{manager: manager, managed: found, syncTarget: florin}
		subscriber.OnProven(types.NamespacedName{})
		subscriber.OnEvent(test.event)
		if found.stale != test.stale {
			t.Errorf("%s: the configs are to be read again: %v, want %v", name, found.stale, test.stale)
		}
	}
}

func TestOldestFirst(t *testing.T) {
	made := func(second int64) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetCreationTimestamp(metav1.NewTime(time.Unix(second, 0)))
		return object
	}
	if oldestFirst(made(1), made(2)) >= 0 || oldestFirst(made(2), made(1)) <= 0 || oldestFirst(made(1), made(1)) != 0 {
		t.Error("configs are not sorted by their age")
	}
}
