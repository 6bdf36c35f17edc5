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
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

func cancelable(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

// The status is written with the object only if the resource has no status subresource.
func TestWithStatus(t *testing.T) {
	status := map[string]any{"ready": true}
	for name, test := range map[string]struct {
		resource plan.Resource
		status   map[string]any
		want     bool
	}{
		"no status subresource": {plan.Resource{}, status, true},
		"no status":             {plan.Resource{}, nil, false},
		"a subresource":         {plan.Resource{StatusSubresource: true}, status, false},
		"with status return":    {plan.Resource{StatusReturn: true}, status, true},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": "source"}}
		if test.status != nil {
			object.Object["status"] = test.status
		}
		desired := &unstructured.Unstructured{Object: map[string]any{"spec": "desired"}}
		got := (&mailboxWriter{resource: &test.resource}).withStatus(desired, plan.StatusReturn{OnTarget: object})
		want := map[string]any{"spec": "desired"}
		if test.want {
			want["status"] = status
		}
		if !reflect.DeepEqual(got.Object, want) || len(desired.Object) != 1 {
			t.Errorf("%s: want %v, got %v of %v", name, want, got.Object, desired.Object)
		}
	}
}

// A mailbox object is the hub's only if its own mark verifies that the hub upsynced it. Then its missing fields are known.
func TestObserveInMailbox(t *testing.T) {
	up := someMark
	up.Direction = ownership.DirectionUp
	desired := desiredOf(t, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "till", "namespace": "shop"}, "spec": {"replicas": 2}}`, up)
	foreign, down := up, up
	foreign.SyncTarget, down.Direction = "another", ownership.DirectionDown
	for name, test := range map[string]struct {
		mark  string
		owned bool
	}{
		"upsynced by the hub":              {testOwner.Seal(up), true},
		"upsynced from another target":     {testOwner.Seal(foreign), false},
		"a mark without a seal":            {up.String(), false},
		"the mark of a copy on the target": {testOwner.Seal(down), false},
		"no mark":                          {"", false},
		"an unreadable mark":               {"{", false},
		"a mark of an unknown version":     {`{"v": 3}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: decode(t, `{
				"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1},
				"metadata": {"name": "till", "namespace": "shop", "uid": "u", "deletionTimestamp": "2026-02-03T04:05:06Z"}
			}`)}
			if test.mark != "" {
				object.SetAnnotations(map[string]string{ownership.MarkAnnotation: test.mark})
			}
			view := &mailboxView{owner: testOwner}
			rules := observe.Observer{Planner: &plan.Planner{Down: transform.Down{Owner: testOwner}}}
			got := plan.Resource{Retain: true}.NewMailboxObject(object, rules.UpsyncMark(object), desired)
			if got.Owned != test.owned || !got.Terminating || !got.Retain || (len(got.Missing) > 0) != test.owned || view.isUpsynced(object) != test.owned {
				t.Errorf("got %+v", got)
			}
			if test.owned && (got.Mark != up || !reflect.DeepEqual(got.Missing, []string{".spec.replicas"})) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := (plan.Resource{}).NewMailboxObject(nil, nil, desired); got != nil {
		t.Errorf("without an object got %+v", got)
	}
}
