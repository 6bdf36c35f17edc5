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
	"strconv"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// A change of a single object comes before all keys that other events have enqueued.
func TestChangesHavePriority(t *testing.T) {
	many := map[string]string{"a": "a", "b": "b", "c": "c"}
	for name, cause := range map[string]func(*enqueueHarness){
		"a config changes": func(r *enqueueHarness) {
			for name := range many {
				r.upsync.upsynced.add(shop(name), r.widgetsOnTarget().Ref(shop(name)))
			}
			r.SetMatcher(upsyncMatcher(nil))
		},
		"the target's list": func(r *enqueueHarness) {
			for name := range many {
				r.upsync.handler(t.Context(), r.widgetsOnTarget().TargetAPI).OnAdd(widget(t, name, nil), true)
			}
		},
		"objects are created": func(r *enqueueHarness) {
			for name := range many {
				r.OnEvent(mailboxes.Event{Key: shop(name), New: widget(t, name, nil)})
			}
		},
		"the target's cache shows new copies": func(r *enqueueHarness) {
			for name := range many {
				r.enqueuer.copyHandler(r.target.apis[0]).OnAdd(must(r.target.transformForCache(r.target.apis[0])(widget(t, name, nil)))(t), false)
			}
		},
		"objects to upsync are created": func(r *enqueueHarness) {
			for name := range many {
				r.upsync.handler(t.Context(), r.widgetsOnTarget().TargetAPI).OnAdd(widget(t, name, nil), false)
			}
		},
		"the cordon ends": func(r *enqueueHarness) {
			for name := range many {
				r.enqueuer.states.setFailure(shop(name), Failure{Reason: plan.ReasonTargetCordoned})
			}
			r.Uncordon()
		},
		"the target is back": func(r *enqueueHarness) {
			for name := range many {
				r.enqueuer.changes.add(r.Clock.Now(), originMailbox, shop(name))
			}
			r.Resume()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newEnqueueHarness(t, upsyncMatcher(many))
			cause(r)
			if waiting := r.queue.Len(); waiting != len(many) {
				t.Fatalf("%d objects are enqueued, want %d", waiting, len(many))
			}
			r.OnEvent(mailboxes.Event{Key: shop("edited"), Old: widget(t, "edited", nil), New: widget(t, "edited", nil)})
			key, _ := r.queue.Get()
			if r.queue.Done(key); key != shop("edited") {
				t.Errorf("%s is processed before the edited object", key)
			}
		})
	}
}

// A burst in one namespace delays the objects of another namespace by few objects, and no change of a known object.
func TestBurstsTakeTurns(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(nil))
	createdIn := func(namespace, name string) {
		object := widget(t, name, nil)
		object.SetNamespace(namespace)
		r.OnEvent(mailboxes.Event{Key: keyOf(object), New: object})
	}
	const burst = 2000
	for i := range burst {
		createdIn("shop", "w"+strconv.Itoa(i))
	}
	createdIn("till", "one")
	r.OnEvent(mailboxes.Event{Key: shop("edited"), Old: widget(t, "edited", nil), New: widget(t, "edited", nil)})
	position := map[string]int{}
	for i := range burst + 2 {
		key, _ := r.queue.Get()
		r.queue.Done(key)
		position[key.String()] = i
	}
	if position["shop/edited"] != 0 || position["till/one"] > turnSize+1 {
		t.Errorf("the edited object is processed after %d objects, and the object of the other namespace after %d", position["shop/edited"], position["till/one"])
	}
}

// The creation of an object does not wait for the event of another created copy.
func TestCreationsComeFirst(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(nil))
	made := func(name string) { r.OnEvent(mailboxes.Event{Key: shop(name), New: widget(t, name, nil)}) }
	made("first")
	made("second")
	first, _ := r.queue.Get()
	r.queue.Done(first)
	r.enqueuer.copyHandler(r.target.apis[0]).OnAdd(must(r.target.transformForCache(r.target.apis[0])(widget(t, first.Name, nil)))(t), false)
	for _, want := range []string{"second", "first"} {
		key, _ := r.queue.Get()
		if r.queue.Done(key); key != shop(want) {
			t.Errorf("got %s first, want %s", key, want)
		}
	}
}
