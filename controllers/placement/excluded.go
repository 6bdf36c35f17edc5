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
	"time"

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

// exclusion is a reason why an object is not placed.
type exclusion struct{ reason, message string }

// isSystem reports whether no placement can select the object.
func (e exclusion) isSystem() bool { return e.reason != ReasonNotSelected }

var (
	notSelected     = exclusion{ReasonNotSelected, "it meets no test in spec.downsync of an EdgePlacement"}
	clusterScoped   = exclusion{ReasonNotSelected, "it meets no test in spec.downsync of an EdgePlacement. A test without namespaces and namespaceSelectors selects cluster-scoped objects"}
	systemName      = exclusion{ReasonSystemName, "names that begin with system are Kubernetes' own, which each cluster has itself: give it another name"}
	systemNamespace = exclusion{ReasonSystemNamespace, "namespaces that begin with kube- are Kubernetes' own, which each cluster has itself: put it into another namespace"}
)

// exclusionOf returns why an object that no placement selects is not placed. counts is false if nobody expects
// the object on a cluster: kcp, Kubernetes or the hub made it, or it is a Namespace, which the hub creates for
// its contents.
func exclusionOf(resource plan.Resource, object *unstructured.Unstructured) (why exclusion, counts bool) {
	described := resource.SelectionObject(object)
	switch {
	case plan.IsMarked(object), resource.GroupVersionResource == namespaces, selection.IsBootstrapped(described):
		return exclusion{}, false
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
	// first are the first objects in the order of insertFirst.
	first []edgev2alpha1.ObjectFailure
	// isSystem is true if the namespace belongs to Kubernetes.
	isSystem bool
}

func (e excludedObjects) add(key objectKey, why exclusion) {
	in := e[key.name.Namespace]
	if in == nil {
		in = &excludedIn{isSystem: why == systemNamespace}
		e[key.name.Namespace] = in
	}
	in.count++
	in.first = insertFirst(in.first, edgev2alpha1.ObjectFailure{
		Group: key.resource.Group, Resource: key.resource.Resource, Namespace: key.name.Namespace, Name: key.name.Name, Reason: why.reason, Message: why.message,
	})
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
			first = insertFirst(first, one)
		}
	}
	return count, first
}

// insertFirst inserts an object into a list, which keeps the first MaxFailures objects in a stable order:
// namespaced objects before cluster-scoped ones.
func insertFirst(first []edgev2alpha1.ObjectFailure, added edgev2alpha1.ObjectFailure) []edgev2alpha1.ObjectFailure {
	position, _ := slices.BinarySearchFunc(first, added, func(a, b edgev2alpha1.ObjectFailure) int {
		return cmp.Or(compareBool(a.Namespace == "", b.Namespace == ""), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name))
	})
	if position == edgev2alpha1.MaxFailures {
		return first
	}
	first = slices.Insert(first, position, added)
	return first[:min(len(first), edgev2alpha1.MaxFailures)]
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// excludedState is the last count of a workspace's excluded objects. The lock of the workspace guards it.
type excludedState struct {
	objects excludedObjects
	// stale is true if objects have changed since computedAt.
	stale      bool
	computedAt time.Time
}

// noteExcluded marks the count as stale, because an object that no placement selects has appeared, changed or
// vanished. It requires the lock.
func (w *workspace) noteExcluded() {
	if !w.excluded.stale {
		w.excluded.stale = true
		w.reportRequests.Publish(w.cluster)
	}
}

// observeExcluded returns the excluded objects. It reads the whole workspace at most once in reportInterval.
// again is when it may read the workspace again; zero if nothing has changed.
func (w *workspace) observeExcluded() (excluded excludedObjects, again time.Duration) {
	w.lock.Lock()
	state := w.excluded
	w.lock.Unlock()
	if !state.stale {
		return state.objects, 0
	}
	if wait := reportInterval - w.Clock.Since(state.computedAt); wait > 0 {
		return state.objects, wait
	}
	w.lock.Lock()
	w.excluded.stale, w.excluded.computedAt = false, w.Clock.Now()
	active := w.placements
	w.lock.Unlock()
	excluded = excludedObjects{}
	w.forEachObject(func(resource plan.Resource, source *unstructured.Unstructured) {
		why, counts := exclusionOf(resource, source)
		if !counts || active == nil || source.GetDeletionTimestamp() != nil || mailboxes.ProjectionOf(source) == mailboxes.IdentityOnly {
			return
		}
		selected, known := active.forObject(ruleObject(w.Workloads, w.cluster, resource, source))
		if why.isSystem() || known && len(selected) == 0 {
			excluded.add(keyOf(resource.GroupVersionResource, source), why)
		}
	})
	w.lock.Lock()
	defer w.lock.Unlock()
	w.excluded.objects = excluded
	return excluded, 0
}

// setExcluded sets the counts of excluded objects of each placement.
func (s *summary) setExcluded(excluded excludedObjects) {
	for _, counted := range s.counts {
		counted.excluded, counted.excludedObjects = excluded.of(counted.namespaces)
	}
}

// excludedMessage returns a sentence about objects that are not placed; empty if there are none.
func excludedMessage(count int64) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(" The workspace has %d more objects, which no EdgePlacement places; see status.excludedObjects.", count)
}
