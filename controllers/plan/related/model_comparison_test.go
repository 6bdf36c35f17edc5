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
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// modelComparison is a registry and a model that get the same calls.
type modelComparison struct {
	t        *testing.T
	registry *related.Registry
	model    *model
	// changes are the notifications of the last step.
	changes map[bucketKey][]related.Change
	// objects are the objects to look up, and answers the last results.
	objects []related.Object
	results map[bucketKey][]result
	tried   map[string]int
}

// result contains every result for an object.
type result struct {
	relation          *related.Relation
	publishedResource string
	primary           types.NamespacedName
	// destinationNamespace stands for the whole PrimaryInfo.
	destinationNamespace string
	unrelated            bool
}

// ask returns every result of a registry for an object.
func ask(register *related.Registry, of bucketKey, object related.Object) result {
	answer, _ := register.Find(of.origin, of.resource, object)
	return result{
		relation: answer.Relation, publishedResource: answer.PublishedResource, primary: answer.Primary, destinationNamespace: answer.Query.PrimaryInfo.DestinationNamespace,
		unrelated: register.IsUnrelated(of.origin, of.resource, object),
	}
}

func newModelComparison(t *testing.T, g generator, candidates int) *modelComparison {
	w := &modelComparison{
		t: t, registry: related.NewRegistry(), model: &model{publishedResources: map[string]*modelPublishedResource{}},
		results: map[bucketKey][]result{}, tried: map[string]int{},
	}
	for range candidates {
		w.objects = append(w.objects, g.object())
	}
	for _, of := range abouts {
		w.registry.Subscribe(of.origin, of.resource, func(change related.Change) {
			w.changes[of] = append(w.changes[of], change)
			// A subscriber may change the registry.
			w.registry.Subscribe(of.origin, of.resource, func(related.Change) { t.Error("called after the end of a subscription") })()
		})
		w.results[of] = w.ask(of)
	}
	return w
}

// step makes a random change and compares everything.
func (w *modelComparison) step(g generator) {
	w.t.Helper()
	former, wasSettled := slices.Clone(w.model.claims), map[bucketKey]bool{}
	for _, of := range abouts {
		wasSettled[of] = w.model.isComplete(of)
	}
	w.changes = map[bucketKey][]related.Change{}
	done := w.act(g, pick(g, contributors...))
	for _, of := range abouts {
		answers := w.ask(of)
		w.checkChanged(of, done, w.results[of], answers)
		w.checkCaused(of, done, former, !wasSettled[of] && w.model.isComplete(of))
		w.results[of] = answers
		w.checkScope(of, done)
	}
}

// act makes a random change to one PublishedResource.
func (w *modelComparison) act(g generator, name string) (done string) {
	primary := g.primary()
	switch g.IntN(40) {
	case 0, 1:
		relations := g.relations()
		w.registry.BeginInitialSync(name, relations)
		w.model.begin(name, relations)
		return name + " begins"
	case 2, 3, 4:
		w.registry.CompleteInitialSync(name)
		w.model.complete(name)
		return name + " is complete"
	case 5:
		w.registry.RemovePublishedResource(name)
		w.model.end(name)
		return name + " ends"
	case 6, 7, 8, 9:
		w.registry.RemovePrimary(name, primary)
		w.model.remove(name, primary)
		return fmt.Sprintf("%s removes %s", name, primary)
	case 10:
		w.claimAllAgain(g, name)
		return name + " repeats all claims"
	}
	of := w.someRelation(g, name)
	if g.IntN(12) == 0 {
		w.registry.MarkUnresolved(name, primary, of)
		w.model.fail(name, primary, of)
		return fmt.Sprintf("%s fails for %s by %s", name, primary, of.Identifier)
	}
	query := g.query(primary.Namespace)
	w.registry.SetClaim(name, primary, of, query)
	w.model.set(name, primary, of, query)
	return fmt.Sprintf("%s wants for %s by %s: %+v", name, primary, of.Identifier, query)
}

// someRelation returns a relation of the PublishedResource, and sometimes one that is not its own.
func (w *modelComparison) someRelation(g generator, name string) *related.Relation {
	if resource := w.model.publishedResources[name]; resource != nil && g.IntN(50) > 0 {
		return pick(g, resource.relations...)
	}
	return g.relation("creds")
}

// claimAllAgain repeats all claims of the last epoch in a new one.
func (w *modelComparison) claimAllAgain(g generator, name string) {
	resource := w.model.publishedResources[name]
	if resource == nil {
		return
	}
	relations := slices.Clone(resource.relations)
	if g.IntN(2) == 0 {
		// The PublishedResource is compiled again.
		for index, former := range relations {
			relations[index] = new(*former)
		}
	}
	w.registry.BeginInitialSync(name, relations)
	w.model.begin(name, relations)
	for _, word := range slices.Clone(w.model.claims) {
		for _, of := range relations {
			if word.publishedResource == name && word.key == keyOf(of) && word.identifier == of.Identifier && g.IntN(10) > 0 {
				w.registry.SetClaim(name, word.primary, of, word.query)
				w.model.set(name, word.primary, of, word.query)
			}
		}
	}
}

// ask looks up all objects in both.
func (w *modelComparison) ask(of bucketKey) []result {
	w.t.Helper()
	settled := w.model.isComplete(of)
	if got := w.registry.IsComplete(of.origin, of.resource); got != settled {
		w.t.Fatalf("%v is settled: %v, want %v", of, got, settled)
	}
	var answers []result
	for _, object := range w.objects {
		got := ask(w.registry, of, object)
		first, open := w.model.related(of, object)
		want := result{unrelated: first == nil && settled && !open}
		if first != nil {
			want.relation, want.publishedResource, want.primary, want.destinationNamespace = first.relation, first.publishedResource, first.primary, first.query.PrimaryInfo.DestinationNamespace
		}
		if got != want {
			w.t.Fatalf("%v: %s is %+v, want %+v", of, describe(object), got, want)
		}
		w.count("related", first != nil)
		w.count("unrelated", got.unrelated)
		w.count("open", open && first == nil)
		answers = append(answers, got)
	}
	return answers
}

func (w *modelComparison) count(sort string, is bool) {
	if is {
		w.tried[sort]++
	}
}
