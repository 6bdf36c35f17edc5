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
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/targets"
)

// CheckUpsync checks the kind, the namespace and the name on both sides.
func TestCheckUpsync(t *testing.T) {
	bounds := &policy.NamespacePolicy{Protected: policy.DefaultProtectedNamespaces, Allowed: policy.NamespacePatterns{"kube-public"}, Only: []string{"shop", "kube-system", "kube-public"}}
	refused := []UnavailableResource{
		{GroupResource: schema.GroupResource{Group: "down.io"}, Kind: "Skid", Reason: policy.ReasonConversionNotPublished, Message: "no"},
		{GroupResource: schema.GroupResource{Group: "down.io"}, Kind: "Crate", Reason: plan.ReasonNotServed, Message: "no"},
	}
	for name, test := range map[string]struct {
		mailbox, target, kind string
		from, to              string
		allows                plan.Allowed
		want                  string
	}{
		"a plain object":                         {"secrets", "secrets", "Secret", "shop/x", "shop/x", plan.Allowed{}, ""},
		"out of a protected namespace":           {"secrets", "secrets", "Secret", "kube-system/x", "kube-system/x", plan.Allowed{}, policy.ReasonNamespaceProtected},
		"the PublishedResource allows it":        {"secrets", "secrets", "Secret", "kube-system/x", "kube-system/x", plan.Allowed{ProtectedNamespaces: true}, ""},
		"the SyncTarget allows it":               {"secrets", "secrets", "Secret", "kube-public/x", "kube-public/x", plan.Allowed{}, ""},
		"out of a namespace that is not allowed": {"secrets", "secrets", "Secret", "till/x", "shop/x", plan.Allowed{ProtectedNamespaces: true}, policy.ReasonNamespaceNotAllowed},
		"into a protected namespace":             {"secrets", "secrets", "Secret", "shop/x", "kube-system/x", plan.Allowed{}, policy.ReasonNamespaceProtected},
		"into another namespace":                 {"secrets", "secrets", "Secret", "shop/x", "till/x", plan.Allowed{}, ""},
		"a protected Namespace":                  {"namespaces", "namespaces", "Namespace", "kube-system", "x", plan.Allowed{}, policy.ReasonNamespaceProtected},
		"as a protected Namespace":               {"namespaces", "namespaces", "Namespace", "shop", "kube-extra", plan.Allowed{}, policy.ReasonNamespaceProtected},
		"another kind of that name":              {"nodes", "nodes", "Node", "kube-system", "kube-system", plan.Allowed{}, ""},
		"rights":                                 {"roles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io", "Role", "shop/x", "shop/x", plan.Allowed{}, policy.ReasonPrivilegedUpsync},
		"disguised rights":                       {"roles.rbac.authorization.k8s.io", "things.down.io", "Thing", "shop/x", "shop/x", plan.Allowed{}, policy.ReasonPrivilegedUpsync},
		"rights under another name":              {"roles.example.com", "roles.rbac.authorization.k8s.io", "Role", "shop/x", "shop/x", plan.Allowed{}, policy.ReasonPrivilegedUpsync},
		"rights that are allowed":                {"roles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io", "Role", "shop/x", "shop/x", plan.Allowed{PrivilegedUpsync: true}, ""},
		"rights with a reserved name":            {"roles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io", "Role", "shop/x", "shop/system:x", plan.Allowed{PrivilegedUpsync: true}, policy.ReasonNameReserved},
		"a name reserved for another resource":   {"configmaps.example.com", "configmaps", "ConfigMap", "shop/kube-root-ca.crt", "shop/kube-root-ca.crt", plan.Allowed{}, ""},
		"by a denied conversion":                 {"secrets", "skids.down.io", "Skid", "shop/x", "shop/x", plan.Allowed{}, policy.ReasonConversionNotPublished},
		"by a former, denied conversion":         {"secrets", "skids.down.io", "", "shop/x", "shop/x", plan.Allowed{}, policy.ReasonConversionNotPublished},
		"by a conversion that is not served":     {"secrets", "crates.down.io", "Crate", "shop/x", "shop/x", plan.Allowed{}, ""},
	} {
		above, below := schema.ParseGroupResource(test.mailbox), schema.ParseGroupResource(test.target)
		rules := rulesFor(Options{
			Resource:        plan.Resource{GroupVersionResource: above.WithVersion("v1")},
			Connection:      &targets.Connection{},
			UnresolvedKinds: refused, NamespacePolicy: func() *policy.NamespacePolicy { return bounds },
		})
		from := plan.TargetAPI{GroupVersionResource: below.WithVersion("v1"), Kind: test.kind, Allowed: test.allows}
		err := rules.CheckUpsync(from, named(test.from), named(test.to))
		refusal, isRefused := errors.AsType[*policy.DeniedError](err)
		if isRefused != (test.want != "") || isRefused && (refusal.Reason != test.want || ReasonFor(err) != test.want) {
			t.Errorf("%s: want %q, got %v", name, test.want, err)
		}
	}
	if err := rulesFor(Options{Connection: &targets.Connection{}}).CheckTargetNamespace(plan.TargetAPI{}, types.NamespacedName{Namespace: "kube-system"}); err != nil {
		t.Errorf("without rules: %v", err)
	}
}

// The scope of an upsync cache excludes denied objects.
func TestSelectedScope(t *testing.T) {
	config := &edgev2alpha1.SyncerConfig{}
	config.Name = "up"
	config.Spec.Upsync = []edgev2alpha1.UpsyncSet{
		{APIGroup: "", Resources: []string{"secrets"}, Namespaces: []string{"shop", "kube-system"}, Names: []string{"*"}},
		{APIGroup: "rbac.authorization.k8s.io", Resources: []string{"roles"}, Namespaces: []string{"shop"}, Names: []string{"*"}},
		{APIGroup: "", Resources: []string{"configmaps"}, Namespaces: []string{"shop", "kube-system"}, Names: []string{"x"}},
	}
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{config}, nil)
	bounds := &policy.NamespacePolicy{Protected: policy.DefaultProtectedNamespaces}
	for resource, want := range map[string]selection.Scope{
		"secrets":                         {Namespaces: []string{"shop"}},
		"configmaps":                      {Names: []types.NamespacedName{{Namespace: "shop", Name: "x"}}},
		"roles.rbac.authorization.k8s.io": {},
	} {
		api := schema.ParseGroupResource(resource).WithVersion("v1")
		options := Options{Resource: plan.Resource{GroupVersionResource: api, Namespaced: true}, Connection: &targets.Connection{}, NamespacePolicy: func() *policy.NamespacePolicy { return bounds }}
		upsync := upsyncCaches{resource: &options.Resource, rules: rulesFor(options), target: newTargetView(&options)}
		got := upsync.selectedScope(matcher, plan.TargetAPI{GroupVersionResource: api})
		if got.All || !slices.Equal(got.Namespaces, want.Namespaces) || !slices.Equal(got.Names, want.Names) {
			t.Errorf("%s: want %+v, got %+v", resource, want, got)
		}
	}
}

// rulesFor returns the observer of single objects, with empty caches on both sides.
func rulesFor(options Options) *observe.Observer {
	planner := plan.Planner{Resource: options.Resource, Down: transform.Down{Owner: options.Owner}}
	return newRules(&options, &planner, newMailboxView(&options), newTargetView(&options))
}

// named parses "namespace/name", or a name alone.
func named(text string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Name: text}
}
