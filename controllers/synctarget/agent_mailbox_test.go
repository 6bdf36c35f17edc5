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
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// allows reports whether one of the rules allows a verb on a resource.
func allows(rules []rbacv1.PolicyRule, verb, group, resource string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Verbs, verb) && slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource)
	})
}

// Whoever has an agent's credentials must not be able to give himself more rights in the mailbox.
func TestAgentWritesNothingThatActsInsideKcp(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	resource := func(group, name string, native bool, upsync synchubv1alpha1.PrivilegedUpsyncPolicy) assignment.Resource {
		return assignment.Resource{
			Published: &assignment.Published{Spec: synchubv1alpha1.PublishedResourceSpec{PrivilegedUpsync: upsync}},
			API:       publishedresource.API{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, Native: native},
		}
	}
	rules := agentClusterRules(assignment.Rules{
		Resources: []assignment.Resource{
			resource("", "configmaps", true, ""),
			resource("", "resourcequotas", true, ""),
			resource(rbac, "roles", true, synchubv1alpha1.PrivilegedUpsyncDeny),
			resource(rbac, "rolebindings", true, synchubv1alpha1.PrivilegedUpsyncTargetGovernsMailbox),
			resource("policy.kcp.io", "widgets", false, ""),
		},
		Watched: []schema.GroupVersionResource{
			{Version: "v1", Resource: "services"}, {Group: rbac, Version: "v1", Resource: "clusterroles"}, {Group: rbac, Version: "v1", Resource: "rolebindings"},
		},
	})
	for _, test := range []struct {
		group, resource string
		want            []string
	}{
		{"", "configmaps", []string{"get", "list", "watch", "patch", "create", "update", "delete"}},
		{"", "configmaps/status", []string{"patch", "update"}},
		{"", "services", []string{"get", "list", "watch", "patch", "create", "update", "delete"}},
		{"", "resourcequotas", []string{"get", "list", "watch"}},
		{"", "resourcequotas/status", nil},
		{rbac, "roles", []string{"get", "list", "watch"}},
		{rbac, "clusterroles", []string{"get", "list", "watch"}},
		{rbac, "rolebindings", []string{"get", "list", "watch", "patch", "create", "update", "delete"}},
		{"policy.kcp.io", "widgets", []string{"get", "list", "watch", "patch"}},
		{"policy.kcp.io", "widgets/status", []string{"patch", "update"}},
	} {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "escalate", "bind"} {
			if got := allows(rules, verb, test.group, test.resource); got != slices.Contains(test.want, verb) {
				t.Errorf("%s %s.%s: %v", verb, test.resource, test.group, got)
			}
		}
	}
}
