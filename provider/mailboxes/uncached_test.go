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
)

// A workspace counts once its binding has bound the resource, and until the binding goes.
func TestBound(t *testing.T) {
	g := NewWithT(t)
	bound := bindings("one", "two", "gone", "unbound")
	for _, binding := range bound[:3] {
		_ = unstructured.SetNestedSlice(binding.Object, []any{map[string]any{"group": "", "resource": "secrets"}}, "status", "boundResources")
	}
	bound[2].Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	mailboxes := newMailboxes()
	addEndpoint(t, mailboxes, "a", caches{bindingsResource: bound[1:]})
	addEndpoint(t, mailboxes, "b", caches{bindingsResource: bound[:2]})
	g.Expect(mailboxes.Bound(secrets.GroupResource())).To(Equal([]logicalcluster.Name{"one", "two"}))
	g.Expect(mailboxes.Bound(configMaps.GroupResource())).To(BeEmpty())
}

// Objects of all endpoints are listed, without a watch.
func TestListUncached(t *testing.T) {
	g := NewWithT(t)
	first := newFakeShard(t, caches{bindingsResource: bindings(here), secrets: {object(here, "a"), object(there, "b")}})
	second := newFakeShard(t, caches{bindingsResource: bindings(there), secrets: {object("third", "c")}})
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{first.url(), second.url()})
	found := map[logicalcluster.Name]string{}
	visit := func(mailbox logicalcluster.Name, object *unstructured.Unstructured) {
		found[mailbox] = object.GetName()
	}
	g.Expect(mailboxes.ListUncached(t.Context(), secrets, visit)).To(Succeed())
	g.Expect(found).To(Equal(map[logicalcluster.Name]string{here: "a", there: "b", "third": "c"}))
	g.Expect(first.watchers(secrets)).To(BeZero())
	second.refuse(true)
	g.Expect(mailboxes.ListUncached(t.Context(), secrets, visit)).NotTo(Succeed())
}
