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

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// Reasons why no placement of the workspace places an object.
const (
	// ReasonNotSelected: the object meets no test of any placement.
	ReasonNotSelected = "NotSelected"
	// ReasonSystemName: the name belongs to Kubernetes.
	ReasonSystemName = "SystemName"
	// ReasonSystemNamespace: the namespace belongs to Kubernetes.
	ReasonSystemNamespace = "SystemNamespace"
)

var (
	notSelected     = failure{ReasonNotSelected, "it meets no test in spec.downsync of an EdgePlacement"}
	clusterScoped   = failure{ReasonNotSelected, "it meets no test in spec.downsync of an EdgePlacement. A test without namespaces and namespaceSelectors selects cluster-scoped objects"}
	systemName      = failure{ReasonSystemName, "names that begin with system are Kubernetes' own, which each cluster has itself: give it another name"}
	systemNamespace = failure{ReasonSystemNamespace, "namespaces that begin with kube- are Kubernetes' own, which each cluster has itself: put it into another namespace"}
)

// exclusionOf returns why an object that no placement selects is not placed. counts is false if nobody expects
// the object on a cluster: kcp, Kubernetes or the hub made it, or it is a Namespace, which the hub creates for
// its contents.
func exclusionOf(resource plan.Resource, object *unstructured.Unstructured) (why failure, counts bool) {
	described := resource.SelectionObject(object)
	switch {
	case plan.IsMarked(object), resource.GroupVersionResource == namespaces, selection.IsBootstrapped(described):
		return failure{}, false
	case selection.IsSystem(described):
		return systemName, strings.HasPrefix(object.GetName(), "system")
	case !selection.IsUserObject(described):
		return systemNamespace, true
	case object.GetNamespace() == "":
		return clusterScoped, true
	default:
		return notSelected, true
	}
}

// excludedObjects are the excluded objects of a workspace by namespace.
type excludedObjects map[string]*excludedIn

// excludedIn are the excluded objects of one namespace, or the cluster-scoped ones.
type excludedIn struct {
	count int64
	// first are the first objects in the order of compareExcluded.
	first []edgev2alpha1.ObjectFailure
	// isSystem is true if the namespace belongs to Kubernetes.
	isSystem bool
}

func (e excludedObjects) add(key objectKey, why failure) {
	in := e[key.name.Namespace]
	if in == nil {
		in = &excludedIn{isSystem: why == systemNamespace}
		e[key.name.Namespace] = in
	}
	in.count++
	in.first = insertFirst(in.first, key.objectFailure(why), compareExcluded)
}

// of returns the number of excluded objects that concern a placement with objects in the given namespaces, and
// the first of these objects.
func (e excludedObjects) of(selectedIn map[string]struct{}) (count int64, first []edgev2alpha1.ObjectFailure) {
	for namespace, in := range e {
		if _, selects := selectedIn[namespace]; !selects && namespace != "" && !in.isSystem {
			continue
		}
		count += in.count
		for _, one := range in.first {
			first = insertFirst(first, one, compareExcluded)
		}
	}
	return count, first
}

// insertFirst inserts an item into a sorted list, which keeps the first MaxFailures items.
func insertFirst[T any](first []T, added T, compare func(a, b T) int) []T {
	position, _ := slices.BinarySearchFunc(first, added, compare)
	if position == edgev2alpha1.MaxFailures {
		return first
	}
	first = slices.Insert(first, position, added)
	return first[:min(len(first), edgev2alpha1.MaxFailures)]
}

// compareExcluded orders excluded objects: namespaced objects come before cluster-scoped ones.
func compareExcluded(a, b edgev2alpha1.ObjectFailure) int {
	return cmp.Or(cmp.Compare(min(len(b.Namespace), 1), min(len(a.Namespace), 1)), cmp.Compare(a.Namespace, b.Namespace), compareFailures(a, b))
}

// compareFailures orders objects by their resources and names.
func compareFailures(a, b edgev2alpha1.ObjectFailure) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// objectFailure returns why an object is not on a cluster, or not healthy there, for a status.
func (k objectKey) objectFailure(why failure) edgev2alpha1.ObjectFailure {
	return edgev2alpha1.ObjectFailure{Group: k.resource.Group, Resource: k.resource.Resource, Namespace: k.name.Namespace, Name: k.name.Name, Reason: why.Reason, Message: why.Message}
}

// countExcluded counts the objects that no placement places. It reads the whole workspace.
func (s *sources) countExcluded(active *placements) excludedObjects {
	excluded := excludedObjects{}
	if active == nil {
		return excluded
	}
	for resource, source := range s.all() {
		why, counts := exclusionOf(resource, source)
		if !counts || source.GetDeletionTimestamp() != nil || mailboxes.ProjectionOf(source) == mailboxes.IdentityOnly {
			continue
		}
		selected, known := active.forObject(s.describe(resource, source))
		if why.Reason != ReasonNotSelected || known && len(selected) == 0 {
			excluded.add(keyOf(resource.GroupVersionResource, source), why)
		}
	}
	return excluded
}

// excludedMessage returns a sentence about objects that are not placed; empty if there are none.
func excludedMessage(count int64) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(" The workspace has %d more objects, which no EdgePlacement places; see status.excludedObjects.", count)
}
