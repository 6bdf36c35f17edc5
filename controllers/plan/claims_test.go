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
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// The claims of a primary follow from the side where the originals are. A primary that is absent from that side keeps its claim.
func TestSetClaims(t *testing.T) {
	spec := fixtures.Decode[synchubv1alpha1.PublishedResourceSpec](t, `
related:
- identifier: down
  origin: Mailbox
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.key}}
  namespace: {reference: {path: data.where}}
- identifier: up
  origin: Target
  resource: {version: v1, resource: configmaps}
  object: {reference: {path: data.key}}`)
	relations, err := related.Compile(spec.Related)
	if err != nil {
		t.Fatal(err)
	}
	planner := Planner{Relations: relations}
	config := edgev2alpha1.SyncerConfig{}
	config.Spec = fixtures.Decode[edgev2alpha1.SyncerConfigSpec](t, `namespacedObjects: [{group: "", resource: secrets, objectsByNamespace: [{namespace: selected, names: [any]}]}]`)
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{&config}, nil)
	primary := func(namespace, data string) *unstructured.Unstructured {
		return fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+namespace+"}, data: "+data+"}")
	}
	for name, test := range map[string]struct {
		inMailbox, onTarget string
		// down and up are the claimed names; "-" if the claim is unresolved.
		down, up string
		fails    bool
	}{
		"on both sides":                   {"{key: one, where: shop}", "{key: two}", "shop/one", "mapped/two", false},
		"not on the target":               {"{key: one, where: shop}", "", "shop/one", "-", false},
		"not in the mailbox":              {"", "{key: two}", "-", "mapped/two", false},
		"in a namespace of a config":      {"{key: one, where: selected}", "", "selected/one", "-", false},
		"in a namespace of no config":     {"{key: one, where: other}", "", "other/one", "-", true},
		"with a name that cannot be read": {"{key: {}, where: shop}", "{key: two}", "-", "mapped/two", true},
	} {
		claiming := claimant{
			key: types.NamespacedName{Namespace: "shop", Name: "first"}, namespace: "mapped", matcher: matcher,
			selection: ObjectSelection{Selection: selection.Selection{Configs: []string{"config"}, Suspended: true}},
		}
		if test.inMailbox != "" {
			claiming.inMailbox = primary("shop", test.inMailbox)
		}
		if test.onTarget != "" {
			claiming.onTarget = primary("mapped", test.onTarget)
		}
		got := planner.setClaims(claiming)
		if got.Action != SetClaims || len(got.Claims) != 2 || (got.Err != nil) != test.fails {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		checkClaim(t, name+": the claim down", got.Claims[0], relations[0], test.down, "mapped")
		checkClaim(t, name+": the claim up", got.Claims[1], relations[1], test.up, "shop")
	}
}

// checkClaim compares a claim with its relation, the claimed name, which is "-" if the claim is unresolved, and the namespace of the primary on
// the other side.
func checkClaim(t *testing.T, what string, claim Claim, relation *related.Relation, name, destination string) {
	t.Helper()
	switch query := claim.Query; {
	case claim.Relation != relation:
		t.Errorf("%s: it is of the relation %s", what, claim.Relation.Identifier)
	case query == nil:
		if name != "-" {
			t.Errorf("%s: it is unresolved, want %s", what, name)
		}
	case len(query.Names) != 1 || query.Names[0].String() != name:
		t.Errorf("%s: it is of %v, want %s", what, query.Names, name)
	case query.PrimaryInfo.DestinationNamespace != destination || !query.PrimaryInfo.Suspended || !slices.Equal(query.PrimaryInfo.Configs, []string{"config"}):
		t.Errorf("%s: it has %+v", what, query.PrimaryInfo)
	}
}
