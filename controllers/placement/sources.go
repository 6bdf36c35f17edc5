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
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// sources shows the objects of a workspace as the caches have them.
type sources struct {
	cluster   logicalcluster.Name
	workloads *mailboxes.Mailboxes
	policy    *CachePolicy
	clock     clock.PassiveClock
}

// get returns an object of the workspace.
func (s *sources) get(key objectKey) (*unstructured.Unstructured, mailboxes.State) {
	return s.workloads.Get(key.resource, s.cluster, key.name)
}

// list returns the objects of a resource; known is false while they are unknown.
func (s *sources) list(of schema.GroupVersionResource) (objects []*unstructured.Unstructured, known bool) {
	return s.workloads.List(of, s.cluster)
}

// all returns the cached objects of the published resources. CustomResourceDefinitions come first, so that other
// objects can wait for them.
func (s *sources) all() iter.Seq2[plan.Resource, *unstructured.Unstructured] {
	crdsFirst := func(a, b schema.GroupVersionResource) int {
		return cmp.Compare(min(waves.Of(a.GroupResource()), waves.RBAC), min(waves.Of(b.GroupResource()), waves.RBAC))
	}
	return func(yield func(plan.Resource, *unstructured.Unstructured) bool) {
		for _, of := range slices.SortedFunc(maps.Keys(s.policy.published()), crdsFirst) {
			resource, ok := s.policy.placeable(of)
			if !ok {
				continue
			}
			objects, _ := s.list(of)
			for _, source := range objects {
				if !yield(resource, source) {
					return
				}
			}
		}
	}
}

// placeable returns the facts about the objects that can be placed and that nobody deletes.
func (s *sources) placeable() iter.Seq2[objectKey, *rules.Object] {
	return func(yield func(objectKey, *rules.Object) bool) {
		for resource, source := range s.all() {
			if source.GetDeletionTimestamp() == nil && rules.IsPlaceable(resource, source) &&
				!yield(keyOf(resource.GroupVersionResource, source), s.describe(resource, source)) {
				return
			}
		}
	}
}

// slice returns the SinglePlacementSlice of a placement; nil if there is none.
func (s *sources) slice(placement string) *edgev2alpha1.SinglePlacementSlice {
	cached, _ := s.get(objectKey{slicesResource, types.NamespacedName{Name: placement}})
	if cached == nil {
		return nil
	}
	slice := &edgev2alpha1.SinglePlacementSlice{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(cached.Object, slice) != nil {
		// It has no valid content.
		slice = &edgev2alpha1.SinglePlacementSlice{}
		slice.UID, slice.ResourceVersion = cached.GetUID(), cached.GetResourceVersion()
	}
	return slice
}

// describe returns the facts about an object that placements select it by.
func (s *sources) describe(resource plan.Resource, object *unstructured.Unstructured) *rules.Object {
	return describe(s.workloads, s.cluster, resource, object)
}

// describe returns the facts about an object of a workspace that placements select it by.
func describe(workloads mailboxes.Reader, cluster logicalcluster.Name, resource plan.Resource, object *unstructured.Unstructured) *rules.Object {
	return rules.ObjectOf(resource.GroupResource(), object, func() (labels.Labels, bool) {
		namespace, state := workloads.Get(namespaces, cluster, types.NamespacedName{Name: object.GetNamespace()})
		if state != mailboxes.Present {
			return nil, false
		}
		return plan.MetadataMap(namespace, "labels"), true
	})
}

// areListed reports whether the hub has listed all objects of the workspace.
func (s *sources) areListed() bool {
	for of := range s.policy.published() {
		if _, ok := s.policy.placeable(of); ok && !isListed(s.workloads, of, s.cluster) {
			return false
		}
	}
	return true
}

// areRead reports whether the hub knows the labels of all objects of the workspace.
func (s *sources) areRead() bool {
	limit := s.workloads.Limits.MailboxLimitError(s.cluster)
	return limit.IdentityOnly == 0 && !limit.Evicted && len(s.workloads.Limits.ResourceLimitErrors(s.cluster)) == 0
}

// missingAPIs are the published resources that a placement can select and that its workspace does not show to
// the hub.
type missingAPIs struct {
	// unaccepted are claims that the binding does not accept. unbound are APIs that kcp has not bound because
	// of a naming conflict, and conflict is kcp's message about it.
	unaccepted, unbound []string
	conflict            string
}

// missingAPIs returns the APIs that a placement can select and that the workspace lacks. It ignores an
// exported API without a naming conflict, because kcp is about to bind it.
func (s *sources) missingAPIs(placement *rules.Placement) (missing missingAPIs) {
	conflict, _ := s.workloads.NamingConflict(s.cluster)
	for of := range s.policy.published() {
		resource, ok := s.policy.placeable(of)
		switch {
		case !ok, !placement.MaySelect(of.Group, of.Resource), !s.workloads.IsKnownNotServed(s.cluster, of.GroupResource()):
		case !resource.Exported:
			missing.unaccepted = append(missing.unaccepted, of.GroupResource().String())
		case conflict != nil:
			missing.conflict = strings.TrimSuffix(conflict.Message, ".")
			missing.unbound = append(missing.unbound, of.GroupResource().String())
		}
	}
	slices.Sort(missing.unaccepted)
	slices.Sort(missing.unbound)
	return missing
}
