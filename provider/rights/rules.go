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

package rights

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Verbs, each with what the hub does with it.
var (
	// reading is listing and watching, and looking at one object after a refused or unclear write.
	reading = []string{"get", "list", "watch"}
	// writing is creating and changing by server-side apply, which needs both verbs, changing marks by patches, and
	// deleting. Nothing is ever replaced by an update.
	writing = []string{"create", "delete", "patch"}
)

const rbacGroup = rbacv1.GroupName

var (
	namespaces   = schema.GroupResource{Resource: "namespaces"}
	definitions  = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	rulesReview  = schema.GroupResource{Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"}
	accessReview = schema.GroupResource{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}
)

// paths are what the hub asks a target for beside resources: its version and its APIs. Clusters allow these to everybody who
// has logged in, unless their administrator has taken that away.
var paths = []string{"/api", "/api/*", "/apis", "/apis/*", "/openapi/*", "/version"}

// Options say what may be granted beyond what the hub needs.
type Options struct {
	// Escalate lets the hub write roles that grant more than the hub has itself, and bindings to such roles.
	Escalate bool
}

// table says which verbs are needed on which resource.
type table map[schema.GroupResource]sets.Set[string]

func (t table) add(resource schema.GroupResource, verbs ...string) {
	if t[resource] == nil {
		t[resource] = sets.New[string]()
	}
	t[resource].Insert(verbs...)
}

// tableOf is what the hub needs for the resources, and always.
func tableOf(resources []Resource) table {
	needed := table{}
	// Namespaces are watched, since what waits for one is woken by it, and made for their contents; the mark of such a one is
	// taken off by a patch. Before the first creation, a dry run of two applies to namespaces tells how the target creates.
	needed.add(namespaces, reading...)
	needed.add(namespaces, "create", "patch")
	needed.add(definitions, reading...)
	for _, resource := range resources {
		if resource.Down || resource.Up {
			needed.add(resource.GroupResource(), reading...)
		}
		if resource.Down {
			needed.add(resource.GroupResource(), writing...)
		}
		if resource.InstallsCRD {
			needed.add(definitions, "create", "patch")
		}
	}
	return needed
}

// escalate adds the verbs that the API server asks for where a role, or a binding to one, grants more than its writer has.
func (t table) escalate(resources []Resource) {
	role := func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: rbacGroup, Resource: resource}
	}
	for _, resource := range resources {
		if resource.Group != rbacGroup || !resource.Down {
			continue
		}
		switch resource.Resource {
		case "roles", "clusterroles":
			t.add(resource.GroupResource(), "escalate")
		case "rolebindings":
			t.add(role("roles"), "bind")
			t.add(role("clusterroles"), "bind")
		case "clusterrolebindings":
			t.add(role("clusterroles"), "bind")
		}
	}
}

// sorted returns the resources of the table in a stable order.
func (t table) sorted() []schema.GroupResource {
	return slices.SortedFunc(maps.Keys(t), compare)
}

// Rules returns what a role must allow so that the hub can work with the resources, in a stable order. That is in all
// namespaces of a cluster: with most resources, whoever has it can become its administrator.
func Rules(resources []Resource, options Options) []rbacv1.PolicyRule {
	needed := tableOf(resources)
	if options.Escalate {
		needed.escalate(resources)
	}
	needed.add(rulesReview, "create")
	needed.add(accessReview, "create")
	var rules []rbacv1.PolicyRule
	for _, resource := range needed.sorted() {
		verbs := sets.List(needed[resource])
		same := slices.IndexFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return rule.APIGroups[0] == resource.Group && slices.Equal(rule.Verbs, verbs)
		})
		if same >= 0 {
			rules[same].Resources = append(rules[same].Resources, resource.Resource)
			continue
		}
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs})
	}
	return append(rules, rbacv1.PolicyRule{NonResourceURLs: slices.Clone(paths), Verbs: []string{"get"}})
}

// Needed returns the same as single verbs on resources, as an access review asks about them. What [Options] add is not
// needed.
func Needed(resources []Resource) []authorizationv1.ResourceAttributes {
	needed := tableOf(resources)
	var attributes []authorizationv1.ResourceAttributes
	for _, resource := range needed.sorted() {
		for _, verb := range sets.List(needed[resource]) {
			attributes = append(attributes, authorizationv1.ResourceAttributes{Group: resource.Group, Resource: resource.Resource, Verb: verb})
		}
	}
	return attributes
}

// Missing returns what of the needed the rules do not allow for all names. They are those of the whole cluster: what is
// allowed in one namespace only does not count.
func Missing(needed []authorizationv1.ResourceAttributes, rules []authorizationv1.ResourceRule) []authorizationv1.ResourceAttributes {
	return slices.DeleteFunc(slices.Clone(needed), func(one authorizationv1.ResourceAttributes) bool {
		return slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
			return len(rule.ResourceNames) == 0 && covers(rule.Verbs, one.Verb) && covers(rule.APIGroups, one.Group) && covers(rule.Resources, one.Resource)
		})
	})
}

// Grown returns what rules allow and those before did not, as single verbs on resources.
func Grown(before, after []rbacv1.PolicyRule) []authorizationv1.ResourceAttributes {
	var allowed []authorizationv1.ResourceRule
	for _, rule := range before {
		allowed = append(allowed, authorizationv1.ResourceRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
	}
	var wanted []authorizationv1.ResourceAttributes
	for _, rule := range after {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					wanted = append(wanted, authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: verb})
				}
			}
		}
	}
	return Missing(wanted, allowed)
}

func covers(allowed []string, asked string) bool {
	return slices.Contains(allowed, rbacv1.VerbAll) || slices.Contains(allowed, asked)
}

// Describe lists verbs by resource, of the first resources up to the limit, and says how many more there are.
func Describe(attributes []authorizationv1.ResourceAttributes, limit int) string {
	verbs := table{}
	for _, one := range attributes {
		verbs.add(schema.GroupResource{Group: one.Group, Resource: one.Resource}, one.Verb)
	}
	var parts []string
	for i, resource := range verbs.sorted() {
		if i == limit {
			parts = append(parts, "and "+strconv.Itoa(len(verbs)-limit)+" more")
			break
		}
		parts = append(parts, resource.String()+" ("+strings.Join(sets.List(verbs[resource]), ", ")+")")
	}
	return strings.Join(parts, ", ")
}
