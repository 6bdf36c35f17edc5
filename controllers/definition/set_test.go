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

package definition_test

import (
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/controllers/definition"
)

// What is no longer wanted stays, and says so; the hub goes on with it when it is wanted again.
func TestKeeperKeepsWhatIsNotWanted(t *testing.T) {
	t.Parallel()
	g, ctx, way := NewWithT(t), t.Context(), newUpWay(t)
	source, theirs, never := unique("v1"), unique("v1"), unique("v1")
	never.Spec.Versions[0].Storage = false // no API server accepts it
	put(t, theirs)
	keeper := keep(t, way)
	all := []definition.Wanted{wanted(source), wanted(theirs), wanted(never)}
	keeper.Set(all)
	keeper.reaches(t, source, definition.ReasonInStep)
	keeper.reaches(t, theirs, definition.ReasonNotOwned)
	keeper.reaches(t, never, definition.ReasonInvalid)
	before := get(ctx, g, t, source.Name)

	keeper.Set(nil)
	eventually(t, func(g Gomega) {
		g.Expect(keeper.States()).To(HaveLen(1))
		state := keeper.state(source)
		g.Expect(state.Reason).To(Equal(definition.ReasonKept))
		g.Expect(state.Ready).To(BeFalse())
		g.Expect(state.Installed).To(BeTrue())
	})
	g.Expect(get(ctx, g, t, source.Name).ResourceVersion).To(Equal(before.ResourceVersion))
	// It is nobody's business now.
	reads := len(way.reads(source.Name))
	touch(t, source.Name)
	keeper.Set(all)
	keeper.reaches(t, source, definition.ReasonInStep)
	g.Expect(len(way.reads(source.Name))).To(BeNumerically(">", reads))
	g.Expect(way.writes(source.Name)).To(HaveLen(1), "it is what it was")
}

// What is set again as it was costs nothing.
func TestKeeperSetsTheSame(t *testing.T) {
	t.Parallel()
	g, way := NewWithT(t), newUpWay(t)
	source, rival, next := unique("v1"), unique("v1"), unique("v1")
	rival.Spec.Names, rival.Name = source.Spec.Names, source.Name
	keeper := keep(t, way)
	first := wanted(source)
	second := definition.Wanted{PublishedResource: "second", UID: "second", CRD: rival}
	keeper.Set([]definition.Wanted{first, second})
	keeper.reaches(t, source, definition.ReasonInStep)
	keeper.Set([]definition.Wanted{first, second, wanted(next)})
	keeper.reaches(t, next, definition.ReasonInStep)
	reads := way.reads(source.Name)

	copied := first
	copied.CRD = source.DeepCopy()
	copied.CRD.ResourceVersion = "7"
	last := unique("v1")
	keeper.Set([]definition.Wanted{copied, second, wanted(next), wanted(last)})
	keeper.reaches(t, last, definition.ReasonInStep)
	g.Expect(way.reads(source.Name)).To(Equal(reads))
	g.Expect(way.writes(source.Name)).To(HaveLen(1), "the first of two counts")

	// Who asks for it is written on it.
	keeper.Set([]definition.Wanted{second})
	eventually(t, func(g Gomega) {
		g.Expect(get(t.Context(), g, t, source.Name).Annotations).To(ContainElement(ContainSubstring(`"name":"second"`)))
	})
	g.Expect(way.writes(source.Name)).To(HaveLen(2))
}

// Set may be called while it does something else about the same definition.
func TestKeeperChangesItsMind(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*running, definition.Wanted){
		"to nothing":           func(r *running, _ definition.Wanted) { r.Set(nil) },
		"to something else":    func(r *running, changed definition.Wanted) { r.Set([]definition.Wanted{changed}) },
		"to nothing, and back": func(r *running, changed definition.Wanted) { r.Set(nil); r.Set([]definition.Wanted{changed}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, way := NewWithT(t), newUpWay(t)
			source := unique("v1")
			changed := source.DeepCopy()
			changed.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "changed"
			arrived, let := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(let) })
			defer release()
			way.beforeWriting(source.Name, func() {
				close(arrived)
				<-let
			})
			keeper := keep(t, way)
			keeper.Set([]definition.Wanted{wanted(source)})
			g.Eventually(arrived).WithTimeout(patience).Should(BeClosed())
			change(keeper, wanted(changed))
			release()
			if name == "to nothing" {
				keeper.reaches(t, source, definition.ReasonKept)
				return
			}
			keeper.reaches(t, source, definition.ReasonInStep)
			g.Expect(get(t.Context(), g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("changed"))
			g.Expect(way.writes(source.Name)).To(HaveLen(2))
		})
	}
}
