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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Options say what is granted beside what the hub needs, and where.
type Options struct {
	// Escalate lets the hub write roles that grant more than the hub has itself, and bindings to such roles.
	Escalate bool
	// Namespaces are the only ones in which the hub gets rights; none stands for the whole cluster.
	Namespaces []string
}

// table says which verbs are needed on which resource.
type table map[schema.GroupResource]sets.Set[string]

func (t table) add(resource schema.GroupResource, verbs ...string) {
	if t[resource] == nil {
		t[resource] = sets.New[string]()
	}
	t[resource].Insert(verbs...)
}

// tableOf is what the hub needs for the resources, and always, in the whole cluster.
func tableOf(resources []Resource) table {
	needed := resourcesOf(resources)
	// Namespaces are watched, since what waits for one is woken by it, and made for their contents; the mark of such a one is
	// taken off by a patch. Before the first creation, a dry run of two applies to namespaces tells how the target creates.
	needed.add(namespaces, reading...)
	needed.add(namespaces, "create", "patch")
	needed.add(definitions, reading...)
	for _, resource := range resources {
		if resource.InstallsCRD {
			needed.add(definitions, "create", "patch")
		}
	}
	return needed
}

// resourcesOf is what the hub needs for the resources alone.
func resourcesOf(resources []Resource) table {
	needed := table{}
	for _, resource := range resources {
		if resource.Down || resource.Up {
			needed.add(resource.GroupResource(), reading...)
		}
		if resource.Down {
			needed.add(resource.GroupResource(), writing...)
		}
	}
	return needed
}

// divide tells the resources whose objects are in namespaces from the others.
func divide(resources []Resource) (namespaced, others []Resource) {
	for _, resource := range resources {
		if resource.ClusterScoped {
			others = append(others, resource)
		} else {
			namespaced = append(namespaced, resource)
		}
	}
	return namespaced, others
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

// Rules returns what a ClusterRole must allow so that the hub can work with the resources, in a stable order. Unless the options
// name namespaces, that is in all namespaces of a cluster: with most resources, whoever has it can become its administrator.
// Else the hub may only look at these namespaces, and at the one by which it knows the cluster; [RulesIn] are for each of them.
func Rules(resources []Resource, options Options) []rbacv1.PolicyRule {
	needed := table{}
	if len(options.Namespaces) == 0 {
		needed = tableOf(resources)
		if options.Escalate {
			needed.escalate(resources)
		}
	}
	needed.add(rulesReview, "create")
	needed.add(accessReview, "create")
	rules := append(needed.rules(), rbacv1.PolicyRule{NonResourceURLs: slices.Clone(paths), Verbs: []string{"get"}})
	if len(options.Namespaces) > 0 {
		named := func(names []string, verbs ...string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{namespaces.Group}, Resources: []string{namespaces.Resource}, ResourceNames: names, Verbs: verbs}
		}
		rules = append(rules, named([]string{metav1.NamespaceSystem}, "get"), named(slices.Sorted(slices.Values(options.Namespaces)), reading...))
	}
	return rules
}

// RulesIn returns what a Role must allow in each of the namespaces that the options name. Resources whose objects are in no
// namespace are left out.
func RulesIn(resources []Resource, options Options) []rbacv1.PolicyRule {
	resources, _ = divide(resources)
	needed := resourcesOf(resources)
	if options.Escalate {
		needed.escalate(resources)
	}
	return needed.rules()
}

// rules returns the rules that allow what the table says.
func (t table) rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, resource := range t.sorted() {
		verbs := sets.List(t[resource])
		same := slices.IndexFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return rule.APIGroups[0] == resource.Group && slices.Equal(rule.Verbs, verbs)
		})
		if same >= 0 {
			rules[same].Resources = append(rules[same].Resources, resource.Resource)
			continue
		}
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs})
	}
	return rules
}

// Needed returns the same as single verbs on resources, as an access review asks about them: in each of the namespaces if there
// are any, and what is in none in the whole cluster. What [Options] add is not needed.
func Needed(resources []Resource, in ...string) []authorizationv1.ResourceAttributes {
	if len(in) == 0 {
		return tableOf(resources).attributes("")
	}
	namespaced, others := divide(resources)
	attributes := resourcesOf(others).attributes("")
	for _, namespace := range in {
		attributes = append(attributes, resourcesOf(namespaced).attributes(namespace)...)
	}
	return attributes
}

func (t table) attributes(namespace string) []authorizationv1.ResourceAttributes {
	var attributes []authorizationv1.ResourceAttributes
	for _, resource := range t.sorted() {
		for _, verb := range sets.List(t[resource]) {
			attributes = append(attributes, authorizationv1.ResourceAttributes{Namespace: namespace, Group: resource.Group, Resource: resource.Resource, Verb: verb})
		}
	}
	return attributes
}

// Missing returns what of the needed the rules do not allow for all names. They are those that hold where it is needed: in a
// namespace, or in the whole cluster.
func Missing(needed []authorizationv1.ResourceAttributes, rules []authorizationv1.ResourceRule) []authorizationv1.ResourceAttributes {
	return slices.DeleteFunc(slices.Clone(needed), func(one authorizationv1.ResourceAttributes) bool {
		return slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
			return len(rule.ResourceNames) == 0 && covers(rule.Verbs, one.Verb) && covers(rule.APIGroups, one.Group) && covers(rule.Resources, one.Resource)
		})
	})
}

// Grown returns what rules allow and those before did not, as single verbs on resources. What is only allowed for objects of
// some names is not among it.
func Grown(before, after []rbacv1.PolicyRule) []authorizationv1.ResourceAttributes {
	var allowed []authorizationv1.ResourceRule
	for _, rule := range before {
		allowed = append(allowed, authorizationv1.ResourceRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
	}
	var wanted []authorizationv1.ResourceAttributes
	for _, rule := range after {
		if len(rule.ResourceNames) > 0 {
			continue
		}
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

// Describe lists verbs by resource, and by namespace where there are any, of the first resources, about as many as the limit, and
// says how many more there are.
func Describe(attributes []authorizationv1.ResourceAttributes, limit int) string {
	verbs := map[string]table{}
	for _, one := range attributes {
		if verbs[one.Namespace] == nil {
			verbs[one.Namespace] = table{}
		}
		verbs[one.Namespace].add(schema.GroupResource{Group: one.Group, Resource: one.Resource}, one.Verb)
	}
	// Namespaces of which the same is to be said are named together.
	var texts []string
	namespaces := map[string][]string{}
	for _, namespace := range slices.Sorted(maps.Keys(verbs)) {
		text := verbs[namespace].describe(limit)
		if namespace == "" {
			texts = append(texts, text)
			continue
		}
		namespaces[text] = append(namespaces[text], namespace)
	}
	shown, hidden := len(verbs[""]), 0
	for _, text := range slices.SortedFunc(maps.Keys(namespaces), func(a, b string) int { return strings.Compare(namespaces[a][0], namespaces[b][0]) }) {
		if shown >= limit {
			hidden += len(namespaces[text])
			continue
		}
		shown += len(verbs[namespaces[text][0]])
		texts = append(texts, text+" in "+NameNamespaces(namespaces[text]))
	}
	if hidden > 0 {
		texts = append(texts, "and more in "+strconv.Itoa(hidden)+" namespaces")
	}
	return strings.Join(texts, "; ")
}

// namedNamespaces is how many namespaces are named.
const namedNamespaces = 10

// NameNamespaces names namespaces in a sentence, the first of many.
func NameNamespaces(names []string) string {
	if len(names) == 1 {
		return "the namespace " + names[0]
	}
	more := ""
	if len(names) > namedNamespaces {
		names, more = names[:namedNamespaces], " and "+strconv.Itoa(len(names)-namedNamespaces)+" more"
	}
	return "the namespaces " + strings.Join(names, ", ") + more
}

func (t table) describe(limit int) string {
	var parts []string
	for i, resource := range t.sorted() {
		if i == limit {
			parts = append(parts, "and "+strconv.Itoa(len(t)-limit)+" more")
			break
		}
		parts = append(parts, resource.String()+" ("+strings.Join(sets.List(t[resource]), ", ")+")")
	}
	return strings.Join(parts, ", ")
}
