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
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/synchub-dev/synchub/provider/rbac"
)

const always = `: get /api,/api/*,/apis,/apis/*,/openapi/*,/version
apiextensions.k8s.io: customresourcedefinitions get,list,watch
authorization.k8s.io: selfsubjectaccessreviews,selfsubjectrulesreviews create
core: namespaces create,get,list,patch,watch`

// formatRules returns the rules as sorted lines.
func formatRules(rules []rbacv1.PolicyRule) string {
	var lines []string
	for _, rule := range rules {
		group := strings.Join(rule.APIGroups, ",")
		if len(rule.NonResourceURLs) > 0 {
			lines = append(lines, ": "+strings.Join(rule.Verbs, ",")+" "+strings.Join(rule.NonResourceURLs, ","))
			continue
		}
		if group == "" {
			group = "core"
		}
		lines = append(lines, group+": "+strings.Join(rule.Resources, ",")+" "+strings.Join(rule.Verbs, ","))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func parse(t *testing.T, texts ...string) []rbac.Resource {
	t.Helper()
	resources, err := rbac.ParseResources(texts)
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

func TestRules(t *testing.T) {
	for name, test := range map[string]struct {
		resources []string
		escalate  bool
		// more are the rules in addition to the default ones, and less the default ones that are missing.
		more, less []string
	}{
		"nothing is synced": {},
		"down": {
			resources: []string{"deployments.apps"},
			more:      []string{"apps: deployments create,delete,get,list,patch,watch"},
		},
		"only up": {
			resources: []string{"pods:up"},
			more:      []string{"core: pods get,list,watch"},
		},
		"several of a group": {
			resources: []string{"secrets", "configmaps", "pods:up"},
			more:      []string{"core: configmaps,secrets create,delete,get,list,patch,watch", "core: pods get,list,watch"},
		},
		"namespaces themselves": {
			resources: []string{"namespaces"},
			more:      []string{"core: namespaces create,delete,get,list,patch,watch"},
			less:      []string{"core: namespaces create,get,list,patch,watch"},
		},
		"a definition is installed": {
			resources: []string{"databases.db.example.com:crd"},
			more: []string{
				"apiextensions.k8s.io: customresourcedefinitions create,get,list,patch,watch",
				"db.example.com: databases create,delete,get,list,patch,watch",
			},
			less: []string{"apiextensions.k8s.io: customresourcedefinitions get,list,watch"},
		},
		"roles without escalation": {
			resources: []string{"roles.rbac.authorization.k8s.io"},
			more:      []string{"rbac.authorization.k8s.io: roles create,delete,get,list,patch,watch"},
		},
		"roles with escalation": {
			resources: []string{"roles.rbac.authorization.k8s.io"}, escalate: true,
			more: []string{"rbac.authorization.k8s.io: roles create,delete,escalate,get,list,patch,watch"},
		},
		"bindings with escalation": {
			resources: []string{"rolebindings.rbac.authorization.k8s.io"}, escalate: true,
			more: []string{
				"rbac.authorization.k8s.io: clusterroles,roles bind",
				"rbac.authorization.k8s.io: rolebindings create,delete,get,list,patch,watch",
			},
		},
		"bindings of the cluster with escalation": {
			resources: []string{"clusterrolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io"}, escalate: true,
			more: []string{
				"rbac.authorization.k8s.io: clusterrolebindings create,delete,get,list,patch,watch",
				"rbac.authorization.k8s.io: clusterroles bind,create,delete,escalate,get,list,patch,watch",
			},
		},
		"escalation without roles": {
			resources: []string{"roles.rbac.authorization.k8s.io:up", "configmaps"}, escalate: true,
			more: []string{"rbac.authorization.k8s.io: roles get,list,watch", "core: configmaps create,delete,get,list,patch,watch"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := slices.DeleteFunc(append(strings.Split(always, "\n"), test.more...), func(line string) bool { return slices.Contains(test.less, line) })
			slices.Sort(want)
			resources := parse(t, test.resources...)
			got := rbac.ClusterRoleRules(resources, rbac.Options{Escalate: test.escalate})
			if formatRules(got) != strings.Join(want, "\n") {
				t.Errorf("want\n%s\ngot\n%s", strings.Join(want, "\n"), formatRules(got))
			}
			slices.Reverse(resources)
			if again := rbac.ClusterRoleRules(resources, rbac.Options{Escalate: test.escalate}); !reflect.DeepEqual(again, got) {
				t.Errorf("in another order of resources there are other rules:\n%s", formatRules(again))
			}
		})
	}
}

// granted returns the rules in the form of a rules review.
func granted(rules []rbacv1.PolicyRule) []authorizationv1.ResourceRule {
	var allowed []authorizationv1.ResourceRule
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			allowed = append(allowed, authorizationv1.ResourceRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
		}
	}
	return allowed
}

func TestRequiredAttributesMatchTheRules(t *testing.T) {
	for name, texts := range map[string][]string{
		"nothing":   nil,
		"one":       {"configmaps"},
		"up":        {"pods:up"},
		"installed": {"databases.db.example.com:crd"},
		"many":      {"roles.rbac.authorization.k8s.io", "namespaces", "deployments.apps", "statefulsets.apps", "pods:up"},
	} {
		t.Run(name, func(t *testing.T) {
			resources := parse(t, texts...)
			needed := rbac.RequiredAttributes(resources, rbac.Tenancy{})
			rules := granted(rbac.ClusterRoleRules(resources, rbac.Options{}))
			if missing := rbac.MissingAttributes(needed, rules); len(missing) > 0 {
				t.Errorf("the rules lack %s", rbac.DescribeAttributes(missing, 100))
			}
			for i, rule := range rules {
				if rule.APIGroups[0] == authorizationv1.GroupName {
					continue
				}
				for _, verb := range rule.Verbs {
					less := slices.Clone(rules)
					less[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(other string) bool { return other == verb })
					if missing := rbac.MissingAttributes(needed, less); len(missing) != len(rule.Resources) {
						t.Errorf("%s on %v is needed by nothing", verb, rule.Resources)
					}
				}
			}
		})
	}
}

func TestMissing(t *testing.T) {
	needed := []authorizationv1.ResourceAttributes{{Group: "apps", Resource: "deployments", Verb: "get"}}
	for name, test := range map[string]struct {
		rule    authorizationv1.ResourceRule
		allowed bool
	}{
		"exactly":          {authorizationv1.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}, true},
		"all verbs":        {authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}, true},
		"everything":       {authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, true},
		"another verb":     {authorizationv1.ResourceRule{Verbs: []string{"list"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}, false},
		"another group":    {authorizationv1.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"deployments"}}, false},
		"another resource": {authorizationv1.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}}, false},
		"only one name":    {authorizationv1.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"one"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if missing := rbac.MissingAttributes(needed, []authorizationv1.ResourceRule{test.rule}); (len(missing) == 0) != test.allowed {
				t.Errorf("missing: %v", missing)
			}
			if len(needed) != 1 {
				t.Error("the required permissions were changed")
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	attributes := rbac.RequiredAttributes(parse(t, "pods:up", "deployments.apps"), rbac.Tenancy{})
	for limit, want := range map[int]string{
		9: "namespaces (create, get, list, patch, watch), pods (get, list, watch), customresourcedefinitions.apiextensions.k8s.io (get, list, watch), deployments.apps (create, delete, get, list, patch, watch)",
		1: "namespaces (create, get, list, patch, watch), and 3 more",
		0: "and 4 more",
	} {
		if got := rbac.DescribeAttributes(attributes, limit); got != want {
			t.Errorf("want %s\ngot  %s", want, got)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]rbac.Resource{
		"configmaps":                   {Resource: "configmaps", Down: true, Up: true},
		"deployments.apps":             {Group: "apps", Resource: "deployments", Down: true, Up: true},
		"pods:up":                      {Resource: "pods", Up: true},
		"databases.db.example.com:crd": {Group: "db.example.com", Resource: "databases", Down: true, Up: true, InstallsCRD: true},
		"databases.example.com:up:crd": {Group: "example.com", Resource: "databases", Up: true, InstallsCRD: true},
	} {
		got, err := rbac.ParseResource(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: want %+v, got %+v %s, %v", text, want, got, got, err)
		}
	}
	for _, text := range []string{"", ":up", "a:down", "a/b", "*", "*.apps", "a b", "*.*", "pods.*", "Pods", "pods,secrets", "pods/exec", "a.b_c"} {
		if _, err := rbac.ParseResource(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestAddedAttributes(t *testing.T) {
	before := rbac.ClusterRoleRules(parse(t, "configmaps", "pods:up"), rbac.Options{})
	for name, test := range map[string]struct {
		resources []string
		options   rbac.Options
		want      string
	}{
		"the same":          {resources: []string{"configmaps", "pods:up"}},
		"less":              {resources: []string{"configmaps:up"}},
		"more verbs":        {resources: []string{"pods"}, want: "pods (create, delete, patch)"},
		"another resource":  {resources: []string{"deployments.apps:up"}, want: "deployments.apps (get, list, watch)"},
		"a definition":      {resources: []string{"configmaps:crd"}, want: "customresourcedefinitions.apiextensions.k8s.io (create, patch)"},
		"more than it has":  {resources: []string{"roles.rbac.authorization.k8s.io:up"}, options: rbac.Options{Escalate: true}, want: "roles.rbac.authorization.k8s.io (get, list, watch)"},
		"leave to escalate": {resources: []string{"roles.rbac.authorization.k8s.io"}, options: rbac.Options{Escalate: true}, want: "roles.rbac.authorization.k8s.io (create, delete, escalate, get, list, patch, watch)"},
	} {
		t.Run(name, func(t *testing.T) {
			grown := rbac.AddedAttributes(before, rbac.ClusterRoleRules(parse(t, test.resources...), test.options))
			if got := rbac.DescribeAttributes(grown, len(grown)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	// A rule for one name does not allow all names.
	named := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}, ResourceNames: []string{"one"}}}
	if grown := rbac.AddedAttributes(named, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}); len(grown) != 1 {
		t.Errorf("it grows by %v", grown)
	}
}

func TestMerge(t *testing.T) {
	got := rbac.MergeResources(parse(t, "pods:up", "deployments.apps"), parse(t, "pods", "databases.example.com:crd"), parse(t, "databases.example.com"))
	if want := parse(t, "pods", "deployments.apps", "databases.example.com:crd"); !reflect.DeepEqual(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

// Any annotation is refused, or parsed to a resource without wildcards that has the same format again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "*", "pods", "deployments.apps:up", "deployments.apps:crd:up", "pods/exec", ":up", "a.b.c:x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		resource, err := rbac.ParseResource(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(resource.Group+resource.Resource, "*/ ") {
			t.Errorf("%q gives rights for %+v", text, resource)
		}
		if again, err := rbac.ParseResource(resource.String()); err != nil || again != resource {
			t.Errorf("%q is %+v and then %+v: %v", text, resource, again, err)
		}
	})
}

// With namespaces, the ClusterRole allows only reading these namespaces, and kube-system, which identifies the cluster.
func TestRulesInNamespaces(t *testing.T) {
	resources := parse(t, "configmaps", "pods:up", "roles.rbac.authorization.k8s.io")
	resources = append(resources, rbac.Resource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Down: true, Up: true, ClusterScoped: true})
	bounded := rbac.Options{Namespaces: []string{"till", "shop"}}
	var got []string
	for _, rule := range rbac.ClusterRoleRules(resources, bounded) {
		for _, resource := range rule.Resources {
			got = append(got, fmt.Sprintf("%s %v %v", resource, rule.ResourceNames, rule.Verbs))
		}
	}
	if want := []string{
		"selfsubjectaccessreviews [] [create]", "selfsubjectrulesreviews [] [create]", "namespaces [kube-system] [get]", "namespaces [shop till] [get list watch]",
	}; !slices.Equal(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
	for escalate, want := range map[bool]string{
		false: "core: configmaps create,delete,get,list,patch,watch\ncore: pods get,list,watch\nrbac.authorization.k8s.io: roles create,delete,get,list,patch,watch",
		true:  "core: configmaps create,delete,get,list,patch,watch\ncore: pods get,list,watch\nrbac.authorization.k8s.io: roles create,delete,escalate,get,list,patch,watch",
	} {
		if got := formatRules(rbac.RoleRules(resources, rbac.Options{Namespaces: bounded.Namespaces, Escalate: escalate})); got != want {
			t.Errorf("want\n%s\ngot\n%s", want, got)
		}
	}
	const want = "clusterroles.rbac.authorization.k8s.io (create, delete, get, list, patch, watch); configmaps (create, delete, get, list, patch, watch), " +
		"pods (get, list, watch), and 1 more in the namespaces shop, till"
	if got := rbac.DescribeAttributes(rbac.RequiredAttributes(resources, rbac.Tenancy{}, "shop", "till"), 2); got != want {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
	if grown := rbac.AddedAttributes(rbac.ClusterRoleRules(resources, rbac.Options{}), slices.Concat(rbac.ClusterRoleRules(resources, bounded), rbac.RoleRules(resources, bounded))); len(grown) > 0 {
		t.Errorf("rights grow when they are bound to namespaces: %v", grown)
	}
}

// The text fits into a condition for any number of namespaces.
func TestDescribeManyNamespaces(t *testing.T) {
	resources := parse(t, "configmaps", "pods:up")
	var many []string
	for i := range 256 {
		many = append(many, fmt.Sprintf("%063d", i))
	}
	if text := rbac.DescribeAttributes(rbac.RequiredAttributes(resources, rbac.Tenancy{}, many...), 20); len(text) > 2000 || !strings.HasSuffix(text, " and 246 more") {
		t.Errorf("%d characters: %s", len(text), text)
	}
}
