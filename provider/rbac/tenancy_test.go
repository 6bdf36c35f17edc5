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

package rbac_test

import (
	"slices"
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// With a ClusterRole for workspaces the hub only reads the resources, and writes what it keeps for the workspaces.
func TestTenancyRules(t *testing.T) {
	resources := parse(t, "configmaps", "deployments.apps", "namespaces", "roles.rbac.authorization.k8s.io", "databases.db.example.com:crd")
	options := rbac.Options{Escalate: true, Tenancy: rbac.Tenancy{Role: "edit", ResourceQuotas: true, LimitRanges: true}}
	want := `: get /api,/api/*,/apis,/apis/*,/openapi/*,/version
apiextensions.k8s.io: customresourcedefinitions create,get,list,patch,watch
apps: deployments get,list,watch
authorization.k8s.io: selfsubjectaccessreviews,selfsubjectrulesreviews create
core: configmaps,serviceaccounts get,list,watch
core: limitranges,namespaces,resourcequotas create,delete,get,list,patch,watch
db.example.com: databases get,list,watch
rbac.authorization.k8s.io: clusterroles bind
rbac.authorization.k8s.io: rolebindings create,delete,get,list,patch,watch
rbac.authorization.k8s.io: roles get,list,watch`
	rules := rbac.ClusterRoleRules(resources, options)
	if got := formatRules(rules); got != want {
		t.Errorf("want %s\ngot  %s", want, got)
	}
	for _, rule := range rules {
		if slices.Contains(rule.Verbs, "bind") && !slices.Equal(rule.ResourceNames, []string{"edit"}) {
			t.Errorf("the hub may bind %v", rule.ResourceNames)
		}
	}
	if got, want := formatRules(options.Tenancy.AccountRules()), "core: serviceaccounts create,delete,impersonate,patch"; got != want {
		t.Errorf("want %s\ngot  %s", want, got)
	}

	// The reviews find these rules sufficient, and another ClusterRole missing.
	all := slices.Concat(granted(rules), granted(options.Tenancy.AccountRules()))
	if missing := rbac.MissingAttributes(rbac.RequiredAttributes(resources, options.Tenancy), all); len(missing) > 0 {
		t.Errorf("the rules lack %s", rbac.DescribeAttributes(missing, 100))
	}
	other := rbac.Tenancy{Role: "admin"}
	if got, want := rbac.DescribeAttributes(rbac.MissingAttributes(rbac.RequiredAttributes(resources, other), all), 100), "clusterroles.rbac.authorization.k8s.io/admin (bind)"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	if added := other.AddedBinding(rules); len(added) != 1 {
		t.Errorf("the other ClusterRole adds %v", added)
	}
	if got := rbac.DescribeAttributes(rbac.RequiredAttributes(nil, options.Tenancy), 100); got != "clusterroles.rbac.authorization.k8s.io/edit (bind), limitranges (create, delete, get, list, patch, watch), namespaces (create, get, list, patch, watch), "+
		"resourcequotas (create, delete, get, list, patch, watch), serviceaccounts (get, list, watch), customresourcedefinitions.apiextensions.k8s.io (get, list, watch), "+
		"rolebindings.rbac.authorization.k8s.io (create, delete, get, list, patch, watch); "+
		"serviceaccounts (create, delete, impersonate, patch) in the namespace synchub-tenants" {
		t.Errorf("got %s", got)
	}
}

func TestTenancyOf(t *testing.T) {
	for text, want := range map[string]rbac.Tenancy{
		"{}": {},
		"{namespaces: Shared, resourceQuota: {}}":                               {},
		"{namespaces: PerWorkspace, role: edit}":                                {},
		"{namespaces: PerWorkspace, identity: Workspace, role: edit}":           {Role: "edit"},
		"{namespaces: PerWorkspace, resourceQuota: {hard: {}}, limitRange: {}}": {ResourceQuotas: true, LimitRanges: true},
	} {
		tenancy := fixtures.Decode[edgev2alpha1.Tenancy](t, text)
		if got := rbac.TenancyOf(&tenancy); got != want {
			t.Errorf("%s: want %+v, got %+v", text, want, got)
		}
	}
	if got := rbac.TenancyOf(nil); got != (rbac.Tenancy{}) {
		t.Errorf("without a tenancy: %+v", got)
	}
}
