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

package rbac

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
	// readVerbs is listing and watching, and looking at one object after a refused or unclear write.
	readVerbs = []string{"get", "list", "watch"}
	// writeVerbs is creating and changing by server-side apply, which needs both verbs, changing marks by patches, and
	// deleting. Nothing is ever replaced by an update.
	writeVerbs = []string{"create", "delete", "patch"}
)

const rbacGroup = rbacv1.GroupName

var (
	namespaces   = schema.GroupResource{Resource: "namespaces"}
	crds         = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	rulesReview  = schema.GroupResource{Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"}
	accessReview = schema.GroupResource{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}
)

// nonResourceURLs are what the hub asks a target for beside resources: its version and its APIs. Clusters allow these to everybody who
// has logged in, unless their administrator has taken that away.
var nonResourceURLs = []string{"/api", "/api/*", "/apis", "/apis/*", "/openapi/*", "/version"}

// Options say what is granted beside what the hub needs, and where.
type Options struct {
	// Escalate lets the hub write roles that grant more than the hub has itself, and bindings to such roles.
	Escalate bool
	// Namespaces are the only ones in which the hub gets rights; none stands for the whole cluster.
	Namespaces []string
}

// verbTable says which verbs are needed on which resource.
type verbTable map[schema.GroupResource]sets.Set[string]

func (t verbTable) add(resource schema.GroupResource, verbs ...string) {
	if t[resource] == nil {
		t[resource] = sets.New[string]()
	}
	t[resource].Insert(verbs...)
}

// clusterWideVerbs is what the hub needs for the resources, and always, in the whole cluster.
func clusterWideVerbs(resources []Resource) verbTable {
	needed := resourceVerbs(resources)
	// Namespaces are watched, since what waits for one is woken by it, and made for their contents; the mark of such a one is
	// taken off by a patch. Before the first creation, a dry run of two applies to namespaces tells how the target creates.
	needed.add(namespaces, readVerbs...)
	needed.add(namespaces, "create", "patch")
	needed.add(crds, readVerbs...)
	for _, resource := range resources {
		if resource.InstallsCRD {
			needed.add(crds, "create", "patch")
		}
	}
	return needed
}

// resourceVerbs is what the hub needs for the resources alone.
func resourceVerbs(resources []Resource) verbTable {
	needed := verbTable{}
	for _, resource := range resources {
		if resource.Down || resource.Up {
			needed.add(resource.GroupResource(), readVerbs...)
		}
		if resource.Down {
			needed.add(resource.GroupResource(), writeVerbs...)
		}
	}
	return needed
}

// splitByScope tells the resources whose objects are in namespaces from the others.
func splitByScope(resources []Resource) (namespaced, others []Resource) {
	for _, resource := range resources {
		if resource.ClusterScoped {
			others = append(others, resource)
		} else {
			namespaced = append(namespaced, resource)
		}
	}
	return namespaced, others
}

// addEscalation adds the verbs that the API server asks for where a role, or a binding to one, grants more than its writer has.
func (t verbTable) addEscalation(resources []Resource) {
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
func (t verbTable) sorted() []schema.GroupResource {
	return slices.SortedFunc(maps.Keys(t), compareGroupResources)
}

// ClusterRoleRules returns what a ClusterRole must allow so that the hub can work with the resources, in a stable order. Unless the options
// name namespaces, that is in all namespaces of a cluster: with most resources, whoever has it can become its administrator.
// Else the hub may only look at these namespaces, and at the one by which it knows the cluster; [RoleRules] are for each of them.
func ClusterRoleRules(resources []Resource, options Options) []rbacv1.PolicyRule {
	needed := verbTable{}
	if len(options.Namespaces) == 0 {
		needed = clusterWideVerbs(resources)
		if options.Escalate {
			needed.addEscalation(resources)
		}
	}
	needed.add(rulesReview, "create")
	needed.add(accessReview, "create")
	rules := append(needed.rules(), rbacv1.PolicyRule{NonResourceURLs: slices.Clone(nonResourceURLs), Verbs: []string{"get"}})
	if len(options.Namespaces) > 0 {
		named := func(names []string, verbs ...string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{namespaces.Group}, Resources: []string{namespaces.Resource}, ResourceNames: names, Verbs: verbs}
		}
		rules = append(rules, named([]string{metav1.NamespaceSystem}, "get"), named(slices.Sorted(slices.Values(options.Namespaces)), readVerbs...))
	}
	return rules
}

// RoleRules returns what a Role must allow in each of the namespaces that the options name. Resources whose objects are in no
// namespace are left out.
func RoleRules(resources []Resource, options Options) []rbacv1.PolicyRule {
	resources, _ = splitByScope(resources)
	needed := resourceVerbs(resources)
	if options.Escalate {
		needed.addEscalation(resources)
	}
	return needed.rules()
}

// rules returns the rules that allow what the table says.
func (t verbTable) rules() []rbacv1.PolicyRule {
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

// RequiredAttributes returns the same as single verbs on resources, as an access review asks about them: in each of the namespaces if there
// are any, and what is in none in the whole cluster. What [Options] add is not needed.
func RequiredAttributes(resources []Resource, in ...string) []authorizationv1.ResourceAttributes {
	if len(in) == 0 {
		return clusterWideVerbs(resources).attributes("")
	}
	namespaced, others := splitByScope(resources)
	attributes := resourceVerbs(others).attributes("")
	for _, namespace := range in {
		attributes = append(attributes, resourceVerbs(namespaced).attributes(namespace)...)
	}
	return attributes
}

func (t verbTable) attributes(namespace string) []authorizationv1.ResourceAttributes {
	var attributes []authorizationv1.ResourceAttributes
	for _, resource := range t.sorted() {
		for _, verb := range sets.List(t[resource]) {
			attributes = append(attributes, authorizationv1.ResourceAttributes{Namespace: namespace, Group: resource.Group, Resource: resource.Resource, Verb: verb})
		}
	}
	return attributes
}

// MissingAttributes returns what of the needed the rules do not allow for all names. They are those that hold where it is needed: in a
// namespace, or in the whole cluster.
func MissingAttributes(needed []authorizationv1.ResourceAttributes, rules []authorizationv1.ResourceRule) []authorizationv1.ResourceAttributes {
	return slices.DeleteFunc(slices.Clone(needed), func(one authorizationv1.ResourceAttributes) bool {
		return slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
			return len(rule.ResourceNames) == 0 && covers(rule.Verbs, one.Verb) && covers(rule.APIGroups, one.Group) && covers(rule.Resources, one.Resource)
		})
	})
}

// AddedAttributes returns what rules allow and those before did not, as single verbs on resources. What is only allowed for objects of
// some names is not among it.
func AddedAttributes(before, after []rbacv1.PolicyRule) []authorizationv1.ResourceAttributes {
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
	return MissingAttributes(wanted, allowed)
}

func covers(allowed []string, asked string) bool {
	return slices.Contains(allowed, rbacv1.VerbAll) || slices.Contains(allowed, asked)
}

// DescribeAttributes lists verbs by resource, and by namespace where there are any, of the first resources, about as many as the limit, and
// says how many more there are.
func DescribeAttributes(attributes []authorizationv1.ResourceAttributes, limit int) string {
	verbs := map[string]verbTable{}
	for _, one := range attributes {
		if verbs[one.Namespace] == nil {
			verbs[one.Namespace] = verbTable{}
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
		texts = append(texts, text+" in "+FormatNamespaces(namespaces[text]))
	}
	if hidden > 0 {
		texts = append(texts, "and more in "+strconv.Itoa(hidden)+" namespaces")
	}
	return strings.Join(texts, "; ")
}

// maxNamedNamespaces is how many namespaces are named.
const maxNamedNamespaces = 10

// FormatNamespaces names namespaces in a sentence, the first of many.
func FormatNamespaces(names []string) string {
	if len(names) == 1 {
		return "the namespace " + names[0]
	}
	more := ""
	if len(names) > maxNamedNamespaces {
		names, more = names[:maxNamedNamespaces], " and "+strconv.Itoa(len(names)-maxNamedNamespaces)+" more"
	}
	return "the namespaces " + strings.Join(names, ", ") + more
}

func (t verbTable) describe(limit int) string {
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
