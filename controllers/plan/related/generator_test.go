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
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// source makes the choices of a generator: by random numbers, or from the bytes of a fuzzer.
type source interface{ IntN(int) int }

type generator struct{ source }

func seeded(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the same world in every run
}

// seed returns a seed for another generator.
func (g generator) seed() uint64 { return uint64(g.IntN(1000)) } //nolint:gosec // it is not negative

const (
	inMailbox = synchubv1alpha1.RelatedOriginMailbox
	onTarget  = synchubv1alpha1.RelatedOriginTarget
)

var (
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	users   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "users"}
	// abouts are the keys of all buckets that the generated relations concern.
	abouts = []bucketKey{{inMailbox, secrets.GroupResource()}, {onTarget, secrets.GroupResource()}, {inMailbox, users.GroupResource()}}
	// namespaceLabels are the labels of the namespaces that are known.
	namespaceLabels = map[string]map[string]string{"a": {"team": "x"}, "b": {"team": "y"}}
	contributors    = []string{"apps", "databases", "zones"}
)

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

// some returns a sorted part of the given strings.
func some(g generator, from ...string) []string {
	var result []string
	for range g.IntN(3) {
		result = append(result, pick(g, from...))
	}
	slices.Sort(result)
	return slices.Compact(result)
}

func (g generator) relation(identifier string) *related.Relation {
	of := pick(g, abouts...)
	resource := schema.GroupVersionResource{Group: of.resource.Group, Version: "v1", Resource: of.resource.Resource}
	return &related.Relation{
		Identifier: identifier, Origin: of.origin, OnTarget: resource, InMailbox: resource,
		Created: time.Unix(int64(g.IntN(2)), 0),
	}
}

func (g generator) relations() []*related.Relation {
	return []*related.Relation{g.relation("creds"), g.relation("more")}[:1+g.IntN(2)]
}

func (g generator) primary() types.NamespacedName {
	return types.NamespacedName{Namespace: pick(g, "a", "b", "b", ""), Name: pick(g, "p", "q", "r")}
}

func (g generator) query(home string) related.Query {
	query := related.Query{SourceNamespace: home, PrimaryInfo: related.PrimaryInfo{DestinationNamespace: pick(g, "", "", "away")}}
	switch g.IntN(8) {
	case 0, 1, 2, 3:
		for _, namespace := range some(g, "a", "b", "c", home) {
			for _, name := range some(g, "x", "y", "z", "w") {
				query.Names = append(query.Names, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	case 4:
		query.NamesInSelectedNamespaces, query.NamespaceSelector = some(g, "x", "y", "z"), g.namespaceSelector()
	case 5, 6:
		query.Selector = g.selector()
		g.where(&query)
	default:
		query.Owner, query.ControllerOnly = types.UID(pick(g, "one", "two")), g.IntN(2) == 0
		g.where(&query)
	}
	if g.IntN(20) == 0 {
		// No relation uses all of this at once, but the registry accepts it.
		query.Owner, query.Selector = "one", g.selector()
		g.where(&query)
	}
	return query
}

func (g generator) where(query *related.Query) {
	switch g.IntN(4) {
	case 0:
		query.NamespaceSelector = g.namespaceSelector()
	case 1:
		query.Namespaces = some(g, "a", "b", "c")
	default:
		query.Namespaces = []string{query.SourceNamespace}
	}
}

func (g generator) selector() labels.Selector {
	return pick(g, parse("k=1"), parse("k=2"), parse("k in (1)"), parse("k in (1,2),l"), parse("!k"), parse("l=1,k=2"), labels.Everything(), labels.Nothing())
}

func (g generator) namespaceSelector() labels.Selector {
	return pick(g, parse("team=x"), parse("team"), parse("!team"), labels.Everything(), labels.Nothing())
}

func parse(text string) labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return selector
}

func (g generator) object() related.Object {
	namespace := pick(g, "", "a", "a", "b", "b", "c")
	object := related.Object{
		Key:               types.NamespacedName{Namespace: namespace, Name: pick(g, "x", "y", "z", "other")},
		Labels:            pick(g, nil, map[string]string{"k": "1"}, map[string]string{"k": "2", "l": "1"}, map[string]string{"l": ""}),
		NamespaceSelected: g.IntN(3) > 0,
		NamespaceLabels: func() (map[string]string, bool) {
			found, known := namespaceLabels[namespace]
			return found, known
		},
	}
	for range g.IntN(3) {
		object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{UID: types.UID(pick(g, "one", "two")), Controller: pick(g, nil, new(true), new(false))})
	}
	return object
}

func describe(object related.Object) string {
	return fmt.Sprintf("%s, labels %v, owners %v, selected %v", object.Key, object.Labels, object.OwnerReferences, object.NamespaceSelected)
}
