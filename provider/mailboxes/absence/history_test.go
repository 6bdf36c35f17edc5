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

package absence

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// An object that is missing in a store that went back is not deleted. A store whose history is compacted proves nothing.
func TestVerifyHistory(t *testing.T) {
	had := func(version string) *unstructured.UnstructuredList {
		list := &unstructured.UnstructuredList{}
		if version != "" {
			found := object("lost")
			found.SetResourceVersion(version)
			list.Items = append(list.Items, *found)
		}
		return list
	}
	for name, test := range map[string]struct {
		witness   uint64
		now       string
		answer    *unstructured.UnstructuredList
		refusal   error
		requested bool
		lost      bool
		// retried is true if the pass must be repeated.
		retried bool
	}{
		"no witness":                        {now: "100"},
		"no version of the list":            {witness: 50},
		"the store is older":                {witness: 101, now: "100", lost: true},
		"the store had the object":          {witness: 100, now: "100", answer: had("100"), requested: true},
		"the store had an older version":    {witness: 100, now: "200", answer: had("60"), requested: true, lost: true},
		"the store did not have the object": {witness: 100, now: "200", answer: had(""), requested: true, lost: true},
		"the history is compacted":          {witness: 100, now: "200", refusal: apierrors.NewResourceExpired("compacted"), requested: true},
		"the server refuses old versions":   {witness: 100, now: "200", refusal: apierrors.NewBadRequest("no"), requested: true},
		"the server fails":                  {witness: 100, now: "200", refusal: apierrors.NewInternalError(errNoCache), requested: true, retried: true},
		"the server is busy":                {witness: 100, now: "200", refusal: apierrors.NewTooManyRequests("later", 1), requested: true, retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cache := &fakeCache{}
			v, _ := newVerifier(cache)
			v.ObserveBinding(here, "1")
			v.NoteWitness(here, configMaps, Witness{key("lost"), test.witness})
			v.NoteWitness(here, configMaps, Witness{key("earlier"), test.witness / 2})
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"})
			requested := false
			client.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
				requested = true
				options := action.(clienttesting.ListActionImpl).ListOptions
				g.Expect(options.ResourceVersion).To(Equal("100"))
				g.Expect(options.FieldSelector).To(Equal("metadata.name=lost"))
				if test.refusal != nil {
					return true, nil, test.refusal
				}
				return true, test.answer, nil
			})
			err := v.verifyHistory(t.Context(), client, here, configMaps, test.now)
			g.Expect(requested).To(Equal(test.requested))
			g.Expect(err != nil).To(Equal(test.lost || test.retried))
			if test.lost {
				g.Expect(err).To(MatchError(errHistoryLost))
				g.Expect(cache.lost).To(Equal([]Witness{{key("lost"), test.witness}}))
			} else {
				g.Expect(cache.lost).To(BeEmpty())
			}
			if test.witness > 0 && test.now != "" {
				isKept := v.witnessOf(here, configMaps).Version > 0
				g.Expect(isKept).To(Equal(test.retried), "a witness counts once")
			}
		})
	}
}

// While the cache follows a resource without a gap, an observed deletion needs no witness.
func TestWitnessesOfAVerifiedCache(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{})
	v.NoteWitness(here, configMaps, Witness{key("a"), 5})
	g.Expect(v.witnessOf(here, configMaps)).To(BeZero(), "the mailbox is not bound")
	v.ObserveBinding(here, "1")
	v.setCacheVerified(here, configMaps, "1")
	v.NoteWitness(here, configMaps, Witness{key("a"), 5})
	g.Expect(v.witnessOf(here, configMaps)).To(BeZero())
	v.RequireRelist(here, configMaps)
	v.NoteWitness(here, configMaps, Witness{key("a"), 5})
	g.Expect(v.witnessOf(here, configMaps).Version).To(BeEquivalentTo(5))
	v.setCacheVerified(here, secrets, "1")
	v.ObserveBinding(here, "2")
	v.NoteWitness(here, secrets, Witness{key("b"), 6})
	g.Expect(v.witnessOf(here, secrets).Version).To(BeEquivalentTo(6))
	v.ForgetMailbox(here)
	g.Expect(v.witnessOf(here, configMaps)).To(BeZero())
}
