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

package mailboxes

import (
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

type caches = map[schema.GroupVersionResource][]*unstructured.Unstructured

// An object that no cache can show is Unknown, which does not mean that it was deleted.
func TestGetAndList(t *testing.T) {
	mailboxes := newMailboxes(configMaps, secrets)
	addEndpoint(t, mailboxes, "https://one", caches{
		bindingsResource: bindings(here),
		// An endpoint may still show objects of a mailbox whose binding it does not show any more.
		configMaps: {object(here, "a"), object(here, "b"), object(there, "a"), object("unbound", "a")},
	})
	addEndpoint(t, mailboxes, "https://two", caches{bindingsResource: bindings(there), configMaps: {object(there, "c")}})

	for _, tt := range []struct {
		resource schema.GroupVersionResource
		mailbox  logicalcluster.Name
		name     string
		want     State
	}{
		{configMaps, here, "a", Present},
		{configMaps, here, "b", Present},
		{configMaps, here, "c", Absent},
		{configMaps, there, "c", Present},
		{configMaps, there, "a", Absent},
		{configMaps, "unbound", "a", Unknown},
		{configMaps, "nowhere", "a", Unknown},
		{secrets, here, "a", Unknown},
		{schema.GroupVersionResource{Version: "v2", Resource: "configmaps"}, here, "a", Unknown},
	} {
		found, state := mailboxes.Get(tt.resource, tt.mailbox, key(tt.name))
		if state != tt.want {
			t.Errorf("%s of %s in %s: want state %d, got %d", tt.name, tt.resource, tt.mailbox, tt.want, state)
		}
		if isThere := found != nil; isThere != (tt.want == Present) {
			t.Errorf("%s of %s in %s: got %v", tt.name, tt.resource, tt.mailbox, found)
		}
		if found != nil && (found.GetName() != tt.name || logicalcluster.From(found) != tt.mailbox) {
			t.Errorf("%s of %s in %s: got %s of %s", tt.name, tt.resource, tt.mailbox, found.GetName(), logicalcluster.From(found))
		}
		_, known := mailboxes.List(tt.resource, tt.mailbox)
		if known != (tt.want != Unknown) {
			t.Errorf("the list of %s in %s: known is %t", tt.resource, tt.mailbox, known)
		}
	}

	g := NewWithT(t)
	all, known := mailboxes.List(configMaps, here)
	g.Expect(known).To(BeTrue())
	g.Expect(all).To(HaveLen(2))
	_, ok := mailboxes.Client("nowhere")
	g.Expect(ok).To(BeFalse())
}

func TestEventsReachTheirMailbox(t *testing.T) {
	g := NewWithT(t)
	mailboxes := newMailboxes(configMaps)
	endpoint := addEndpoint(t, mailboxes, "https://one", nil)
	subscriber, elsewhere := &recorder{}, &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	mailboxes.Subscribe(configMaps, there, elsewhere)
	expect := func(want ...Event) {
		t.Helper()
		events, proven, resets := subscriber.received()
		g.Expect(events).To(Equal(want))
		g.Expect(proven).To(BeEmpty())
		g.Expect(resets).To(BeZero())
		events, _, _ = elsewhere.received()
		g.Expect(events).To(BeEmpty())
	}
	handler := endpoint.eventHandler(configMaps)
	old, changed := object(here, "a"), object(here, "a")
	changed.SetResourceVersion("2")
	clusterScoped := object(here, "a")
	clusterScoped.SetNamespace("")

	handler.OnAdd(old, true)
	expect(Event{Key: key("a"), New: old, Initial: true})
	handler.OnAdd(old, false)
	expect(Event{Key: key("a"), New: old})
	handler.OnAdd(clusterScoped, false)
	expect(Event{Key: types.NamespacedName{Name: "a"}, New: clusterScoped})
	handler.OnUpdate(old, changed)
	expect(Event{Key: key("a"), Old: old, New: changed})
	handler.OnUpdate(old, old.DeepCopy())
	expect()
	handler.OnDelete(changed)
	expect(Event{Key: key("a"), Old: changed})
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "here|default/a", Obj: changed})
	expect(Event{Key: key("a"), Old: changed})
	handler.OnAdd(object("nobody", "a"), false)
	expect()
}

// A changed binding causes a reconcile of all objects of its mailbox.
func TestBindingsResetTheirMailbox(t *testing.T) {
	g := NewWithT(t)
	mailboxes := newMailboxes(configMaps)
	calls := recordAbsenceCalls(mailboxes)
	endpoint := addEndpoint(t, mailboxes, "https://one", nil)
	subscriber, elsewhere := &recorder{}, &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	mailboxes.Subscribe(configMaps, there, elsewhere)
	handler := endpoint.eventHandler(bindingsResource)
	expect := func(want int) {
		t.Helper()
		_, _, resets := subscriber.received()
		g.Expect(resets).To(Equal(want))
		_, _, resets = elsewhere.received()
		g.Expect(resets).To(BeZero())
	}
	binding := bindings(here)[0]
	changed := binding.DeepCopy()
	changed.SetResourceVersion("2")

	handler.OnAdd(binding, true)
	expect(1)
	g.Expect(calls.take()).To(Equal([]string{"binding here 1"}))
	handler.OnUpdate(binding, binding.DeepCopy())
	expect(0)
	g.Expect(calls.take()).To(BeEmpty())
	handler.OnUpdate(binding, changed)
	expect(1)
	g.Expect(calls.take()).To(Equal([]string{"binding here 2"}))
	handler.OnDelete(changed)
	g.Expect(calls.take()).To(Equal([]string{"forget here"}))
	handler.OnAdd(binding, false)
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "here|bound", Obj: binding})
	g.Expect(calls.take()).To(Equal([]string{"binding here 1", "forget here"}))
}

// An object that is visible again clears its candidate. One whose deletion was not observed requires a list.
func TestEventsClearAndRequireRelist(t *testing.T) {
	g := NewWithT(t)
	mailboxes := newMailboxes(configMaps)
	handler := addEndpoint(t, mailboxes, "https://one", nil).eventHandler(configMaps)
	calls := recordAbsenceCalls(mailboxes)
	handler.OnAdd(object(here, "back"), false)
	handler.OnAdd(object(there, "a"), true)
	g.Expect(calls.take()).To(Equal([]string{"clear here configmaps back", "clear there configmaps a"}))
	handler.OnDelete(object(here, "a"))
	g.Expect(calls.take()).To(BeEmpty())
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "there|default/a", Obj: object(there, "a")})
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "here|default/a", Obj: object(here, "a")})
	g.Expect(calls.take()).To(Equal([]string{"relist there configmaps", "relist here configmaps"}))
}

// CountObjects counts the objects of one mailbox, without its binding, and no objects of unknown caches.
func TestCountObjects(t *testing.T) {
	g := NewWithT(t)
	mailboxes := newMailboxes(configMaps, secrets)
	g.Expect(absenceCache{mailboxes.Caches, mailboxes.Subscriptions}.CountObjects(here)).To(BeZero())
	addEndpoint(t, mailboxes, "https://one", caches{
		bindingsResource: bindings(here, there), configMaps: append(objects(here, 11), objects(there, 20)...), secrets: objects(here, 12),
	})
	g.Expect(absenceCache{mailboxes.Caches, mailboxes.Subscriptions}.CountObjects(here)).To(Equal(23))
}

func TestTransform(t *testing.T) {
	g := NewWithT(t)
	managed := object(here, "a")
	managed.SetManagedFields(nil)
	bare := managed.DeepCopy()
	g.Expect(unstructured.SetNestedSlice(managed.Object, []any{map[string]any{"manager": "x"}}, "metadata", "managedFields")).To(Succeed())
	managed.Object[projectionField] = "Metadata"
	mailboxes := newMailboxes()
	informer := newWildcardInformer(&endpoint{ctx: t.Context(), parts: mailboxes.parts}, configMaps)
	made, err := informer.transform(managed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(toObject(made)).To(Equal(bare))
	g.Expect(ProjectionOf(toObject(made))).To(Equal(FullObject))
	again, err := informer.transform(made)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(BeIdenticalTo(made))
	unknown := cache.DeletedFinalStateUnknown{Key: "a"}
	g.Expect(informer.transform(unknown)).To(Equal(unknown))
}
