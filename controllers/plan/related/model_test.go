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

package related_test

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// model is a registry that searches all claims.
type model struct {
	publishedResources map[string]*modelPublishedResource
	claims             []modelClaim
}

// modelPublishedResource is the state of one PublishedResource.
type modelPublishedResource struct {
	relations []*related.Relation
	// keys are the keys of its primaries with claims since its initial sync.
	keys     []bucketKey
	epoch    int
	complete bool
}

// modelClaim is the claim of a primary, which may have failed since.
type modelClaim struct {
	publishedResource string
	primary           types.NamespacedName
	key               bucketKey
	identifier        string
	epoch             int
	unresolved        bool
	// relation is nil if the claim is not known.
	relation *related.Relation
	query    related.Query
}

type bucketKey struct {
	origin   synchubv1alpha1.RelatedOrigin
	resource schema.GroupResource
}

func keyOf(of *related.Relation) bucketKey {
	return bucketKey{of.Origin, of.SourceResource().GroupResource()}
}

func keysOf(relations []*related.Relation) []bucketKey {
	var abouts []bucketKey
	for _, each := range relations {
		abouts = append(abouts, keyOf(each))
	}
	return abouts
}

func (n *model) begin(name string, relations []*related.Relation) {
	resource := &modelPublishedResource{relations: relations, epoch: 1}
	if former := n.publishedResources[name]; former != nil {
		resource.keys, resource.epoch = former.keys, former.epoch+1
	}
	resource.keys = slices.Concat(resource.keys, keysOf(relations))
	n.publishedResources[name] = resource
}

// hasRelation reports whether the relation belongs to the PublishedResource.
func (n *model) hasRelation(name string, of *related.Relation) bool {
	resource := n.publishedResources[name]
	return resource != nil && slices.Contains(resource.relations, of)
}

// take removes and returns the claim of a primary by a relation.
func (n *model) take(name string, primary types.NamespacedName, of *related.Relation) modelClaim {
	former := modelClaim{publishedResource: name, primary: primary, key: keyOf(of), identifier: of.Identifier}
	n.claims = slices.DeleteFunc(n.claims, func(word modelClaim) bool {
		same := word.publishedResource == name && word.primary == primary && word.key == former.key && word.identifier == of.Identifier
		if same {
			former = word
		}
		return same
	})
	former.epoch = n.publishedResources[name].epoch
	return former
}

func (n *model) set(name string, primary types.NamespacedName, of *related.Relation, query related.Query) {
	if n.hasRelation(name, of) {
		word := n.take(name, primary, of)
		word.unresolved, word.relation, word.query = false, of, query
		n.claims = append(n.claims, word)
	}
}

func (n *model) fail(name string, primary types.NamespacedName, of *related.Relation) {
	if n.hasRelation(name, of) {
		word := n.take(name, primary, of)
		word.unresolved = true
		n.claims = append(n.claims, word)
	}
}

func (n *model) remove(name string, primary types.NamespacedName) {
	if resource := n.publishedResources[name]; resource != nil {
		n.claims = slices.DeleteFunc(n.claims, func(word modelClaim) bool { return word.publishedResource == name && word.primary == primary })
	}
}

func (n *model) complete(name string) {
	if resource := n.publishedResources[name]; resource != nil {
		resource.complete, resource.keys = true, keysOf(resource.relations)
		n.claims = slices.DeleteFunc(n.claims, func(word modelClaim) bool { return word.publishedResource == name && word.epoch != resource.epoch })
	}
}

func (n *model) end(name string) {
	delete(n.publishedResources, name)
	n.claims = slices.DeleteFunc(n.claims, func(word modelClaim) bool { return word.publishedResource == name })
}

func (n *model) isComplete(of bucketKey) bool {
	for _, resource := range n.publishedResources {
		if !resource.complete && slices.Contains(resource.keys, of) {
			return false
		}
	}
	return !slices.ContainsFunc(n.claims, func(word modelClaim) bool { return word.key == of && word.unresolved })
}

// related returns the claim of highest precedence on an object, or nil. open is true if a claim depends on something unknown.
func (n *model) related(of bucketKey, object related.Object) (first *modelClaim, open bool) {
	for index, word := range n.claims {
		if word.key != of || word.relation == nil {
			continue
		}
		is, unknown := queryMatches(word.query, object)
		open = open || unknown
		if is && (first == nil || before(word, *first)) {
			first = &n.claims[index]
		}
	}
	return first, open
}

func before(a, b modelClaim) bool {
	return cmp.Or(
		a.relation.Created.Compare(b.relation.Created),
		cmp.Compare(a.publishedResource, b.publishedResource),
		cmp.Compare(a.primary.Namespace, b.primary.Namespace),
		cmp.Compare(a.primary.Name, b.primary.Name),
		cmp.Compare(a.identifier, b.identifier),
	) < 0
}

// queryMatches reports whether a query selects the object, without any index.
func queryMatches(query related.Query, object related.Object) (is, open bool) {
	key, none := object.Key, object.Key.Namespace == ""
	if !none && key.Namespace != query.SourceNamespace && !object.NamespaceSelected {
		return false, false
	}
	if slices.ContainsFunc(query.Names, func(name types.NamespacedName) bool {
		return name.Name == key.Name && (none || name.Namespace == key.Namespace)
	}) {
		return true, false
	}
	selected, unknown := isSelected(query.NamespaceSelector, object)
	listed := slices.ContainsFunc(query.Namespaces, func(namespace string) bool { return none || namespace == key.Namespace })
	found := hasLabelsOrOwner(query, object)
	spread := slices.Contains(query.NamesInSelectedNamespaces, key.Name)
	return spread && selected || found && (listed || selected), (spread || found) && unknown
}

// isSelected reports whether a selector selects the object's namespace.
func isSelected(selector labels.Selector, object related.Object) (is, unknown bool) {
	if selector == nil || selectsNothing(selector) {
		return false, false
	}
	if object.Key.Namespace == "" || selector.Empty() {
		return true, false
	}
	namespaceLabels, known := object.NamespaceLabels()
	return known && selector.Matches(labels.Set(namespaceLabels)), !known
}

// hasLabelsOrOwner reports whether the object has the labels or the owner of a query.
func hasLabelsOrOwner(query related.Query, object related.Object) bool {
	for _, owner := range object.OwnerReferences {
		if owner.UID == query.Owner && (!query.ControllerOnly || owner.Controller != nil && *owner.Controller) {
			return true
		}
	}
	return query.Selector != nil && query.Selector.Matches(labels.Set(object.Labels))
}

func selectsNothing(selector labels.Selector) bool {
	_, selectable := selector.Requirements()
	return !selectable
}
