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

package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// A mailbox object gets the status of its own copy only, and none if a config or the PublishedResource rules that out.
func TestStatusOfACopy(t *testing.T) {
	mark := ownership.Mark{Source: ownership.Source{Name: "shop", UID: "source"}, Hash: "hash"}
	withMark := func(change func(*ownership.Mark)) ownership.Mark {
		changed := mark
		change(&changed)
		return changed
	}
	stale := withMark(func(m *ownership.Mark) { m.Hash = "former" })
	other := withMark(func(m *ownership.Mark) { m.Source.UID = "former" })
	onTarget, finished := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	for name, test := range map[string]struct {
		ofConfig, ofResource bool
		copied               *ownership.Mark
		removed              *Removal
		want                 *unstructured.Unstructured
		applied              bool
	}{
		"of a copy":                        {ofConfig: true, ofResource: true, copied: &mark, want: onTarget, applied: true},
		"of a copy with former content":    {ofConfig: true, ofResource: true, copied: &stale, want: onTarget},
		"of a former object's copy":        {ofConfig: true, ofResource: true, copied: &other},
		"of no copy":                       {ofConfig: true, ofResource: true},
		"of a removed copy":                {ofConfig: true, ofResource: true, removed: &Removal{Mark: mark, Finished: finished}, want: finished, applied: true},
		"of a copy, without a removed one": {ofConfig: true, ofResource: true, copied: &mark, removed: &Removal{Mark: stale, Finished: finished}, want: onTarget, applied: true},
		"not by the config":                {ofResource: true, copied: &mark},
		"not by the PublishedResource":     {ofConfig: true, copied: &mark},
	} {
		d := &DownSnapshot{Selection: ObjectSelection{Selection: selection.Selection{StatusReturn: test.ofConfig}}, Removed: test.removed}
		if test.copied != nil {
			d.Destination = Copy{Object: onTarget, Observed: &TargetObject{Mark: *test.copied}}
		}
		got := Planner{Resource: Resource{StatusReturn: test.ofResource}}.statusFor(d, &transform.Desired{Mark: mark})
		if got.OnTarget != test.want || got.Applied != test.applied {
			t.Errorf("%s: got the status of %p, applied %v", name, got.OnTarget, got.Applied)
		}
	}
}

// kcp owns the status of the objects that it serves itself.
func TestStatusOfAnUpsyncedObject(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "shop"}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": key.Namespace, "name": key.Name},
	}}
	for native, want := range map[bool]*unstructured.Unstructured{false: object, true: nil} {
		planner := NewPlanner(Resource{Kind: "ConfigMap", Native: native, Namespaced: true}, ownership.Owner{}, ownership.NewHasher([]byte("key")), "mailbox", "florin")
		planner.Up.Version = "v1"
		got := planner.PlanUp(&Snapshot{Key: key, Readable: true, Up: &UpSnapshot{Object: object, State: Selected, Name: key}})
		if got.Err != nil || got.Decision.Action != Create || got.Status.OnTarget != want {
			t.Errorf("native %v: %s with the status of %v: %v", native, got.Decision, got.Status.OnTarget, got.Err)
		}
	}
}
