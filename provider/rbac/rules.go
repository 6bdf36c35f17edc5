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

var (
	// readVerbs allow list, watch, and a GET of one object after a refused or timed-out write.
	readVerbs = []string{"get", "list", "watch"}
	// writeVerbs allow server-side apply, which needs create and patch, patches of marks, and deletion. The hub never sends
	// an update.
	writeVerbs = []string{"create", "delete", "patch"}
)

const rbacGroup = rbacv1.GroupName

var (
	namespaces   = schema.GroupResource{Resource: "namespaces"}
	crds         = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	rulesReview  = schema.GroupResource{Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"}
	accessReview = schema.GroupResource{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}
)

// nonResourceURLs are the URLs of the version and of API discovery. Clusters allow them to all authenticated users,
// unless their administrator has changed that.
var nonResourceURLs = []string{"/api", "/api/*", "/apis", "/apis/*", "/openapi/*", "/version"}

// Options restrict or extend the permissions in roles.
type Options struct {
	// Escalate lets the hub write roles that grant more than the hub has itself, and bindings to such roles.
	Escalate bool
	// Namespaces are the namespaces in which the hub gets permissions. None means the whole cluster.
	Namespaces []string
	// Tenancy is what the hub keeps on the cluster for workload workspaces. It needs permissions in the whole cluster.
	Tenancy Tenancy
}

// verbTable maps resources to the verbs that the hub needs.
type verbTable map[schema.GroupResource]sets.Set[string]

func (t verbTable) add(resource schema.GroupResource, verbs ...string) {
	if t[resource] == nil {
		t[resource] = sets.New[string]()
	}
	t[resource].Insert(verbs...)
}

// clusterWideVerbs returns the verbs that the hub needs in the whole cluster: those for the resources and the workload workspaces, and
// those that it always needs.
func clusterWideVerbs(resources []Resource, tenancy Tenancy) verbTable {
	needed := resourceVerbs(tenancy.asRead(resources))
	tenancy.addTo(needed)
	// The hub watches namespaces to retry objects that wait for one, creates them for their contents, and patches their
	// marks. Before the first create, it applies two namespaces in a dry run to find out how the target creates objects.
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

// resourceVerbs returns the verbs that the hub needs for the resources only.
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

// splitByScope returns the resources that are not known to be cluster-scoped, and those that are.
func splitByScope(resources []Resource) (namespaced, clusterScoped []Resource) {
	for _, resource := range resources {
		if resource.ClusterScoped {
			clusterScoped = append(clusterScoped, resource)
		} else {
			namespaced = append(namespaced, resource)
		}
	}
	return namespaced, clusterScoped
}

// addEscalation adds the verbs escalate and bind. The API server requires them for roles and bindings that grant more than
// their writer has.
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

// ClusterRoleRules returns the rules of the hub's ClusterRole for the resources, in a stable order. Without namespaces in
// the options, they allow access in all namespaces, with which a user can usually become the cluster's administrator.
// Otherwise they only allow reading these namespaces and kube-system, whose UID identifies the cluster. [RoleRules]
// returns the other rules.
func ClusterRoleRules(resources []Resource, options Options) []rbacv1.PolicyRule {
	needed := verbTable{}
	if len(options.Namespaces) == 0 {
		needed = clusterWideVerbs(resources, options.Tenancy)
		if options.Escalate {
			needed.addEscalation(options.Tenancy.asRead(resources))
		}
	}
	needed.add(rulesReview, "create")
	needed.add(accessReview, "create")
	rules := append(slices.Concat(needed.rules(), options.Tenancy.clusterRules()), rbacv1.PolicyRule{NonResourceURLs: slices.Clone(nonResourceURLs), Verbs: []string{"get"}})
	if len(options.Namespaces) > 0 {
		named := func(names []string, verbs ...string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{namespaces.Group}, Resources: []string{namespaces.Resource}, ResourceNames: names, Verbs: verbs}
		}
		rules = append(rules, named([]string{metav1.NamespaceSystem}, "get"), named(slices.Sorted(slices.Values(options.Namespaces)), readVerbs...))
	}
	return rules
}

// RoleRules returns the rules of the hub's Role in each namespace of the options. They leave out cluster-scoped resources.
func RoleRules(resources []Resource, options Options) []rbacv1.PolicyRule {
	resources, _ = splitByScope(resources)
	needed := resourceVerbs(resources)
	if options.Escalate {
		needed.addEscalation(resources)
	}
	return needed.rules()
}

// rules returns the rules that allow the verbs of the table.
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

// RequiredAttributes returns the permissions that the hub needs for the resources and the workload workspaces as single verbs, for
// access reviews. With namespaces, namespaced resources are required in each of them, and cluster-scoped ones in the whole cluster. It
// leaves out the other permissions that [Options] add.
func RequiredAttributes(resources []Resource, tenancy Tenancy, namespaces ...string) []authorizationv1.ResourceAttributes {
	if len(namespaces) == 0 {
		return slices.Concat(clusterWideVerbs(resources, tenancy).attributes(""), tenancy.attributes())
	}
	namespaced, clusterScoped := splitByScope(resources)
	attributes := resourceVerbs(clusterScoped).attributes("")
	for _, namespace := range namespaces {
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

// MissingAttributes returns the needed permissions that the rules do not allow for their names, or for all names. The rules must apply to the
// namespace in which the permissions are needed, or to the whole cluster.
func MissingAttributes(needed []authorizationv1.ResourceAttributes, rules []authorizationv1.ResourceRule) []authorizationv1.ResourceAttributes {
	return slices.DeleteFunc(slices.Clone(needed), func(one authorizationv1.ResourceAttributes) bool {
		return slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
			return (len(rule.ResourceNames) == 0 || one.Name != "" && slices.Contains(rule.ResourceNames, one.Name)) && covers(rule.Verbs, one.Verb) && covers(rule.APIGroups, one.Group) && covers(rule.Resources, one.Resource)
		})
	})
}

// AddedAttributes returns the permissions that the rules after allow and the rules before do not. It ignores rules that
// are restricted to names.
func AddedAttributes(before, after []rbacv1.PolicyRule) []authorizationv1.ResourceAttributes {
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
	return MissingAttributes(wanted, asResourceRules(before))
}

// asResourceRules returns the rules in the form of a review.
func asResourceRules(rules []rbacv1.PolicyRule) (reviewed []authorizationv1.ResourceRule) {
	for _, rule := range rules {
		reviewed = append(reviewed, authorizationv1.ResourceRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
	}
	return reviewed
}

func covers(allowed []string, asked string) bool {
	return slices.Contains(allowed, rbacv1.VerbAll) || slices.Contains(allowed, asked)
}

// DescribeAttributes returns a text that lists verbs by resource, and by namespace if there are any. It lists about limit
// resources, and the number of the remaining ones.
func DescribeAttributes(attributes []authorizationv1.ResourceAttributes, limit int) string {
	verbs := map[string]verbTable{}
	for _, one := range attributes {
		if verbs[one.Namespace] == nil {
			verbs[one.Namespace] = verbTable{}
		}
		verbs[one.Namespace].add(describedResource(one), one.Verb)
	}
	// Namespaces with the same permissions are listed together.
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

// describedResource returns the resource of a permission, with the name of the object if the permission is only for one.
func describedResource(one authorizationv1.ResourceAttributes) schema.GroupResource {
	resource := schema.GroupResource{Group: one.Group, Resource: one.Resource}
	if one.Name != "" {
		return schema.GroupResource{Resource: resource.String() + "/" + one.Name}
	}
	return resource
}

// maxNamedNamespaces is the maximum number of namespaces in a text.
const maxNamedNamespaces = 10

// FormatNamespaces returns a text with the names of the namespaces, or with the first ten and the number of the remaining
// ones.
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
