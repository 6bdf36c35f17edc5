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

package synctarget

import (
	"reflect"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets"
)

func TestAuthorizedCondition(t *testing.T) {
	lacking := []authorizationv1.ResourceAttributes{
		{Resource: "configmaps", Verb: "create"}, {Resource: "configmaps", Verb: "patch"}, {Group: "apps", Resource: "deployments", Verb: "delete"},
	}
	const listed = "On the target the hub may not use: configmaps (create, patch), deployments.apps (delete). Configs in the mailbox ask for some of that. " +
		"If the mailbox's users may have it there, grant it: `kubectl synchub register NAME --target-kubeconfig FILE --add-resources RESOURCES`."
	for name, test := range map[string]struct {
		access  targets.Permissions
		health  targets.Health
		problem *blocker
		want    string
	}{
		"allowed":             {access: targets.Permissions{Known: true}, health: up, want: "True Authorized: The hub has the permissions on the target that the synced resources need."},
		"missing":             {access: targets.Permissions{Known: true, Missing: lacking}, health: up, want: "False MissingPermissions: " + listed},
		"not asked yet":       {health: up, want: "Unknown UnknownPermissions: The target has not yet reported the hub's permissions."},
		"not answered":        {access: targets.Permissions{Problem: "cannot"}, health: up, want: "Unknown UnknownPermissions: cannot"},
		"away":                {access: targets.Permissions{Known: true}, health: unreachable, want: "Unknown TargetUnreachable: refused"},
		"away, and missing":   {access: targets.Permissions{Known: true, Missing: lacking}, health: unauthorized, want: "Unknown Unauthorized: expired"},
		"without credentials": {problem: missing, want: "Unknown CredentialsMissing: no Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			condition := authorizedCondition(nil, test.access, test.health, test.problem)
			if got := formatCondition(condition); got != test.want || condition.Type != edgev2alpha1.ConditionSyncerAuthorized {
				t.Errorf("want %s\ngot  %s", test.want, got)
			}
		})
	}
	tenancy := &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace, Identity: edgev2alpha1.TenantIdentityWorkspace, Role: "edit"}
	if advice := authorizedCondition(tenancy, targets.Permissions{Known: true, Missing: lacking}, up, nil).Message; !strings.Contains(advice, "--tenancy PerWorkspace --tenant-role edit") {
		t.Errorf("the advice is %s", advice)
	}
}

func TestMessageOfMissingRightsIsBounded(t *testing.T) {
	var many []authorizationv1.ResourceAttributes
	for i := range 300 {
		many = append(many, authorizationv1.ResourceAttributes{Group: "example.com", Resource: strings.Repeat("r", 63) + string(rune('a'+i%26)) + string(rune('a'+i/26)), Verb: "create"})
	}
	message := authorizedCondition(nil, targets.Permissions{Known: true, Missing: many}, up, nil).Message
	if len(message) > 4096 || !strings.Contains(message, "and 280 more") {
		t.Errorf("%d characters: %s", len(message), message)
	}
}

func TestNeededResources(t *testing.T) {
	published := func(name schema.GroupResource, kind string, more func(*plan.Resource)) plan.Resource {
		resource := plan.Resource{GroupVersionResource: name.WithVersion("v1"), Kind: kind, Namespaced: true}
		if more != nil {
			more(&resource)
		}
		return resource
	}
	config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	config.Spec.NamespaceScope.Namespaces = []string{"*"}
	config.Spec.NamespaceScope.Resources = []edgev2alpha1.NamespaceScopeDownsyncResource{{GroupResource: edgev2alpha1.GroupResource{Resource: "configmaps"}, APIVersion: "v1"}}
	config.Spec.Upsync = []edgev2alpha1.UpsyncSet{{Resources: []string{"pods", "configmaps", "companions", "secrets"}, Namespaces: []string{"*"}, Names: []string{"*"}}}
	view := &syncmanager.View{
		Matcher: selection.Compile([]*edgev2alpha1.SyncerConfig{config}, nil),
		Published: []plan.Resource{
			published(schema.GroupResource{Resource: "pods"}, "Pod", nil),
			published(schema.GroupResource{Resource: "configmaps"}, "ConfigMap", nil),
			published(schema.GroupResource{Resource: "services"}, "Service", nil),
			published(schema.GroupResource{Resource: "companions"}, "Companion", func(r *plan.Resource) { r.RelatedOnly = true }),
			published(schema.GroupResource{Resource: "nodes"}, "Node", func(r *plan.Resource) { r.Namespaced = false }),
			published(schema.GroupResource{Resource: "secrets"}, "Secret", func(r *plan.Resource) { r.SelectAll = true }),
		},
		CRDs: map[schema.GroupResource]crd.State{
			{Resource: "services"}: {Installed: true, Ready: true}, {Resource: "configmaps"}: {Ready: true}, {Resource: "pods"}: {},
		},
	}
	for name, test := range map[string]struct {
		group, resource string
		converted       bool
		view            *syncmanager.View
		want            string
	}{
		"before the configs are known":           {"", "pods", false, nil, "pods"},
		"only comes up":                          {"", "pods", false, view, "pods:up:crd"},
		"what others are turned into goes down":  {"", "pods", true, view, "pods:crd"},
		"both ways":                              {"", "configmaps", false, view, "configmaps"},
		"not selected any more":                  {"", "services", false, view, "services:crd"},
		"related":                                {"", "companions", false, view, "companions"},
		"all of them, whatever configs say":      {"", "secrets", false, view, "secrets"},
		"in no namespace":                        {"", "nodes", false, view, "nodes"},
		"not published any more, but left there": {"example.com", "gone", false, view, "gone.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := rbac.ParseResources([]string{test.want})
			if err != nil {
				t.Fatal(err)
			}
			want[0].ClusterScoped = test.resource == "nodes"
			entry := ledger.Resource{GroupResource: metav1.GroupResource{Group: test.group, Resource: test.resource}}
			if test.converted {
				entry.ConvertedFrom = []metav1.GroupResource{{Resource: "x"}}
			}
			if got := neededResources([]ledger.Resource{entry}, test.view); !reflect.DeepEqual(got, want) {
				t.Errorf("want %v, got %v", want, got)
			}
		})
	}
}
