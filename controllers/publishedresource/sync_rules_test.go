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

package publishedresource

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// The published rules compile to the same result, and name no SyncTarget of other users.
func TestSyncRules(t *testing.T) {
	hub := Hub{UID: "hub"}
	widgets := fixtures.Decode[synchubv1alpha1.PublishedResource](t, `
metadata: {name: widgets, creationTimestamp: "2026-01-02T03:04:05Z", uid: u}
spec:
  resource: {group: example.dev, resource: widgets, kind: Widget, version: v1}
  api: {source: Schema, schemaFrom: {syncTarget: {cluster: "root:theirs", name: secret-name}}}
  filter: {cel: "self.spec.size > 3"}
  naming: {name: "{{ .SyncTarget }}-x"}
status: {conditions: [{type: Ready, status: "False", reason: SchemaMissing, message: "SyncTarget root:theirs/secret-name does not answer."}]}`)
	theirs, gone := named("theirs"), named("gone")
	Hub{UID: "another"}.SetOwner(&theirs)
	gone.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	rules, err := SyncRulesOf(hub, []string{"kube-*"}, []synchubv1alpha1.PublishedResource{widgets, theirs, gone, named("gadgets")})
	if err != nil || rules.Hub != "hub" || !slices.Equal(rules.ProtectedNamespaces, []string{"kube-*"}) || len(rules.PublishedResources) != 2 || rules.PublishedResources[0].Name != "gadgets" {
		t.Fatalf("got %+v, %v", rules, err)
	}
	if text := string(rules.PublishedResources[1].Spec.Raw); strings.Contains(text, "secret-name") || widgets.Spec.API.SchemaFrom == nil {
		t.Errorf("got %s", text)
	}
	expectShown(t, &widgets, rules)
}

// expectShown compares the second of the shown PublishedResources with the original.
func expectShown(t *testing.T, widgets *synchubv1alpha1.PublishedResource, rules edgev2alpha1.SyncRulesStatus) {
	t.Helper()
	published, absent, err := FromSyncRules(&rules)
	if err != nil || len(absent) != 0 || len(published) != 2 {
		t.Fatalf("got %+v, %v, %v", published, absent, err)
	}
	shown := published[1]
	if shown.Name != "widgets" || !shown.CreationTimestamp.Equal(&widgets.CreationTimestamp) || shown.Status.Conditions[0].Reason != "SchemaMissing" || strings.Contains(shown.Status.Conditions[0].Message, "theirs") {
		t.Errorf("got %+v", shown)
	}
	if shown.Spec.Filter.CEL != widgets.Spec.Filter.CEL || shown.Spec.Naming.Name != widgets.Spec.Naming.Name {
		t.Errorf("got %+v", shown.Spec)
	}
}

// Each workspace has a copy, so the rules are bounded.
func TestSyncRulesAreBounded(t *testing.T) {
	large := named("large")
	large.Spec.Filter = &synchubv1alpha1.Filter{CEL: strings.Repeat("x", maxSyncRulesBytes)}
	rules, err := SyncRulesOf(Hub{}, nil, []synchubv1alpha1.PublishedResource{large, named("after"), named("zebra")})
	if err != nil {
		t.Fatal(err)
	}
	published, absent, err := FromSyncRules(&rules)
	if err != nil || len(published) != 2 || published[0].Name != "after" || !slices.Equal(absent, []string{"large"}) {
		t.Errorf("got %+v, %v, %v", published, absent, err)
	}
}

func named(name string) synchubv1alpha1.PublishedResource {
	one := synchubv1alpha1.PublishedResource{}
	one.Name = name
	one.Spec.Resource.Resource = name
	return one
}
