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

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Adoption is what policies let the hub do with a target object that it does not own.
type Adoption int

const (
	// NotAdopted: the hub leaves the object alone.
	NotAdopted Adoption = iota
	// Adopted: the hub takes the object over.
	Adopted
	// AdoptedIfIdentical: the hub takes the object over if a dry run shows that nothing would change (see
	// [transform.ComparableContent]).
	AdoptedIfIdentical
)

// DecideAdoption decides about a target object without the owner's mark. markErr is the verification error of its mark. The policies
// are set in the PublishedResource and in the SyncTarget. The hub never adopts an object with another hub's mark, or with a mark
// that cannot be parsed.
func DecideAdoption(object *unstructured.Unstructured, markErr error, policies ...synchubv1alpha1.AdoptionPolicy) Adoption {
	isAllowed := func(policy synchubv1alpha1.AdoptionPolicy) bool { return slices.Contains(policies, policy) }
	switch {
	case !ownership.IsAdoptable(markErr):
		return NotAdopted
	case isAllowed(synchubv1alpha1.AdoptionAlways):
		return Adopted
	case isAllowed(synchubv1alpha1.AdoptionKubeStellar) && ownership.IsFromKubeStellar(object.GetAnnotations(), ownership.KubeStellarDownsynced, transform.SelfOf(object)):
		return Adopted
	case isAllowed(synchubv1alpha1.AdoptionIfIdentical):
		return AdoptedIfIdentical
	default:
		return NotAdopted
	}
}
