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
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// A copy in a mailbox is unknown until its event has been processed. The hub does not wait for other objects,
// or for objects with forged marks.
func TestKnowsCopies(t *testing.T) {
	t.Parallel()
	s := newTestShared(func(o *Options) { o.Hub, o.Sealer = "hub", ownership.NewSealer([]byte("key")) })
	w := s.workspaces.ensure("workload")
	of := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	made := func(name string, owner ownership.Owner) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		object.SetNamespace("shop")
		object.SetName(name)
		mark := ownership.Mark{
			Version: ownership.MarkVersion, Hub: owner.Hub, SyncTarget: owner.SyncTarget, Mailbox: w.cluster.String(), Self: transform.SelfOf(object),
			Source: ownership.Source{Resource: "configmaps", Namespace: "shop", Name: name, UID: "u"}, Policy: ownership.PolicyDelete, Hash: "h", Direction: ownership.DirectionUp,
		}
		object.SetAnnotations(map[string]string{ownership.MarkAnnotation: owner.Seal(mark)})
		return object
	}
	owner := s.marks.ownerOf("florin")
	forger := owner
	forger.Sealer = ownership.NewSealer([]byte("forged"))
	plain := &unstructured.Unstructured{}
	others := []*unstructured.Unstructured{plain, made("forged", forger), made("up", ownership.Owner{Hub: "hub", SyncTarget: "florin", Sealer: s.marks.sealer})}
	if !s.startup.areKnown(of, mailboxAt(0), others) {
		t.Error("an object that is not a copy counts as an unknown copy")
	}
	prices := made("prices", owner)
	all := append(others, prices)
	if s.startup.areKnown(of, mailboxAt(0), all) {
		t.Error("a copy is known before its event")
	}
	w.pairs.onCopy(pairAt(objectKey{of, types.NamespacedName{Namespace: "shop", Name: "prices"}}, mailboxAt(1)), nil, prices)
	if s.startup.areKnown(of, mailboxAt(0), all) {
		t.Error("the event of another mailbox makes the copy known")
	}
	w.pairs.onCopy(pairAt(objectKey{of, types.NamespacedName{Namespace: "shop", Name: "prices"}}, mailboxAt(0)), nil, prices)
	if !s.startup.areKnown(of, mailboxAt(0), all) {
		t.Error("a copy is unknown after its event")
	}
}
