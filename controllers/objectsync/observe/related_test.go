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

package observe

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// noNamespaces is a mailbox whose namespaces cannot be read.
type noNamespaces struct{}

func (noNamespaces) NamespaceLabels(string) (map[string]string, bool) { return nil, false }
func (noNamespaces) PartOf(*unstructured.Unstructured) Part           { return Whole }
func (noNamespaces) LimitError(*unstructured.Unstructured) error      { return nil }

// A mark keeps its relation as long as the relation claims the object, and gets another one only when it is certain that the
// claim has ended. So nothing is written at a start, in whichever order primaries are processed.
func TestRelationForMark(t *testing.T) {
	spec := fixtures.Decode[synchubv1alpha1.PublishedResourceSpec](t, `
related:
- identifier: key
  origin: Mailbox
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.key}}`)
	compiled := func() []*related.Relation {
		relations, err := related.Compile(spec.Related)
		if err != nil {
			t.Fatal(err)
		}
		return relations
	}
	boxes := compiled()
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	o := New(Observer{Mailbox: noNamespaces{}, Planner: &plan.Planner{Resource: plan.Resource{GroupVersionResource: secrets}}, Registry: related.NewRegistry()})
	o.Registry.BeginInitialSync("boxes", boxes)
	o.Registry.BeginInitialSync("robots", compiled())
	var answered func() bool
	object := fixtures.Object(t, "{apiVersion: v1, kind: Secret, metadata: {name: one, namespace: shop, uid: u}}")
	matcher := selection.Compile(nil, nil)
	claim := func(name string) {
		primary := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: shop}, data: {key: "+name+"}}")
		wanted, err := boxes[0].Resolve(primary, related.Environment{})
		if err != nil {
			t.Fatal(err)
		}
		o.Registry.SetClaim("boxes", keyOf(primary), boxes[0], wanted)
	}
	expect := func(when, found, named, want string, demands bool) {
		t.Helper()
		var wants plan.Wants
		got := o.relationForMark(synchubv1alpha1.RelatedOriginMailbox, secrets.GroupResource(), o.relatedObjectInMailbox(matcher, object), found, named, &wants)
		if got != want || (wants.Claims != nil) != demands {
			t.Errorf("%s: want %q, got %q, wants claims: %v", when, want, got, wants.Claims != nil)
		}
		if wants.Claims != nil {
			answered = wants.Claims
		}
	}
	expect("a config selects it", "", "boxes/key", "", false)
	expect("a config did before", "boxes/key", "", "boxes/key", false)
	expect("nothing changes", "boxes/key", "boxes/key", "boxes/key", false)
	expect("another relation of the same", "boxes/labelled", "boxes/key", "boxes/key", false)
	expect("another, and not all are processed", "robots/key", "boxes/key", "boxes/key", true)
	if answered() {
		t.Error("it counts as answered before any primary was processed")
	}
	claim("one")
	if !answered() {
		t.Error("it does not count as answered though a primary claims it")
	}
	expect("another, but it is still claimed", "robots/key", "boxes/key", "boxes/key", false)
	o.Registry.CompleteInitialSync("boxes")
	o.Registry.CompleteInitialSync("robots")
	expect("another, but it is still claimed, and all are processed", "robots/key", "boxes/key", "boxes/key", false)
	claim("two")
	expect("another, and all are processed", "robots/key", "boxes/key", "robots/key", false)
}
