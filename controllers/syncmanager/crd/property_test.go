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

package crd_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/test/tier"
)

// anyDefinition returns a CRD with a random subset of a few versions. One of them is the storage version.
func anyDefinition(random *rand.Rand) *apiextensionsv1.CustomResourceDefinition {
	names := []string{"v1alpha1", "v1beta1", "v1", "v2", "v10", "edge"}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	result := newCRD("widgets", "Widget", names[:1+random.IntN(3)]...)
	for i := range result.Spec.Versions {
		version := &result.Spec.Versions[i]
		version.Served = version.Storage || random.IntN(2) == 0
		if random.IntN(2) == 0 {
			version.Schema.OpenAPIV3Schema.Description = fmt.Sprint(random.IntN(3))
		}
	}
	return result
}

// anyObserved returns a CRD that a target may have: of this source or another, changed, with any mark, in any state.
func anyObserved(t *testing.T, random *rand.Rand, ours *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	observed := established(ours)
	if random.IntN(2) == 0 {
		observed = established(desired(t, anyDefinition(random)))
	}
	for _, change := range []func(*apiextensionsv1.CustomResourceDefinition){
		deleted, notMarked, notEstablished, addVersion("v3", random.IntN(2) == 0),
		withMark(func(mark *ownership.Mark) { mark.SyncTarget = "former" }),
		func(object *apiextensionsv1.CustomResourceDefinition) { object.Labels = nil },
		func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Status.StoredVersions = append(object.Status.StoredVersions, "v1")
		},
	} {
		if random.IntN(8) == 0 && observed.Annotations != nil {
			change(observed)
		}
	}
	return observed
}

// isOwned is the condition for overwriting a CRD.
func isOwned(object *apiextensionsv1.CustomResourceDefinition) bool {
	mark, err := ownership.ParseMark(object.Annotations[ownership.MarkAnnotation])
	return err == nil && mark.Hub == testOwner.Hub && mark.SyncTarget == testOwner.SyncTarget && mark.Self.Name == object.Name &&
		mark.Source.Resource == "publishedresources" && object.Labels[ownership.InstalledByLabel] == testOwner.LabelValue()
}

// expectNothingLost checks a CRD that overwrites another one.
func expectNothingLost(t *testing.T, before, after *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	has := func(name string) bool {
		return slices.ContainsFunc(after.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	}
	for _, version := range before.Spec.Versions {
		if version.Served && !has(version.Name) {
			t.Errorf("the served version %s would be lost", version.Name)
		}
	}
	for _, stored := range before.Status.StoredVersions {
		if !has(stored) {
			t.Errorf("objects stored in %s would be lost", stored)
		}
	}
}

func TestDecideInvariants(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	const rounds = 5_000
	seen := map[crd.Action]int{}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test must be repeatable
		source := anyDefinition(random)
		ours := desired(t, source)
		observed := anyObserved(t, random, ours)
		decision := crd.Decide(ours, observed, testOwner, "v1")
		seen[decision.Action]++
		if decision.Action == crd.ActionInstall {
			t.Errorf("seed %d: an existing CRD is not installed", seed)
		}
		if decision.Installed != isOwned(observed) {
			t.Errorf("seed %d: Installed is %t", seed, decision.Installed)
		}
		if decision.Usable && observed.DeletionTimestamp != nil {
			t.Errorf("seed %d: a terminating CRD is not usable", seed)
		}
		if decision.Action == crd.ActionUpdate {
			if !isOwned(observed) || observed.DeletionTimestamp != nil {
				t.Errorf("seed %d: it must be left alone", seed)
			}
			expectNothingLost(t, observed, ours)
			if again := crd.Decide(ours, established(ours), testOwner, "v1").Action; again != crd.ActionNone {
				t.Errorf("seed %d: after it was done there is still to do: %s", seed, again)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, decision)
		}
	}
	for _, action := range []crd.Action{crd.ActionNone, crd.ActionUpdate, crd.ActionWait, crd.ActionForeign, crd.ActionNewer} {
		if seen[action] < rounds/100 {
			t.Errorf("%s was decided %d times only: the test shows little", action, seen[action])
		}
	}
}
