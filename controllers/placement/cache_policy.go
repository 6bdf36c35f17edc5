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
	"maps"
	"slices"
	gosync "sync"
	"sync/atomic"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// placementLimits bound the active placements of one workspace, and so the cost of compiling them.
var placementLimits = mailboxes.Limits{Objects: 4_096, Bytes: 16 << 20}

// CachePolicy decides which objects of workload workspaces are cached whole: the objects that a placement
// selects. It implements [mailboxes.CachePolicy].
type CachePolicy struct {
	limits mailboxes.Limits
	// resources is nil before the first publish.
	resources atomic.Pointer[publishedResources]
	// workspaces holds a *rules.Index by workspace.
	workspaces gosync.Map
}

// publishedResources are the resources that workload workspaces have through the hub's export.
type publishedResources struct {
	// all are the published resources as workspaces have them, and copies as mailboxes have them, both by the GVR that workspaces have.
	all, copies map[schema.GroupVersionResource]plan.Resource
	// unplaced are the resources whose objects no placement selects, for the status.
	unplaced []string
	// crds are the names of the CRDs that the hub installs on targets.
	crds []string
}

var _ mailboxes.CachePolicy = &CachePolicy{}

// NewCachePolicy returns the policy within the limits for one workspace.
func NewCachePolicy(limits mailboxes.Limits) *CachePolicy { return &CachePolicy{limits: limits} }

// RetainedAnnotations implements [mailboxes.CachePolicy].
func (p *CachePolicy) RetainedAnnotations() []string {
	return []string{ownership.MarkAnnotation, ownership.EnsuredAnnotation, ownership.ChoiceAnnotation, edgev2alpha1.AnnotationFormerDestinations, edgev2alpha1.AnnotationExpandParameters}
}

// Limits implements [mailboxes.CachePolicy].
func (p *CachePolicy) Limits(logicalcluster.Name) mailboxes.Limits { return p.limits }

// ConfigLimits implements [mailboxes.CachePolicy].
func (p *CachePolicy) ConfigLimits() mailboxes.Limits { return placementLimits }

// Selects implements [mailboxes.CachePolicy].
func (p *CachePolicy) Selects(all mailboxes.Reader, cluster logicalcluster.Name, of schema.GroupVersionResource, object *unstructured.Unstructured) (selected, known bool) {
	published := p.published()
	if published == nil {
		return true, false
	}
	resource, ok := published[of]
	if ok && isReflectable(resource) && ownership.MayBeForWorkspace(markOf(object)) {
		// The hub compares a reflection with its origin.
		return true, true
	}
	if !ok || resource.RelatedOnly || !rules.IsPlaceable(resource, object) {
		return false, true
	}
	if of == namespaces {
		// The hub may need it although no placement selects it, see contents. There are few, and they are small.
		return true, true
	}
	if p.installsCRD(keyOf(of, object)) {
		// The hub needs only its name.
		return false, true
	}
	index, known := p.indexOf(all, cluster)
	if !known {
		return true, false
	}
	placements, decided := index.PlacementsFor(describe(all, cluster, resource, object))
	// While the labels of the namespace are unknown the object may be needed.
	return len(placements) > 0 || !decided, true
}

// indexOf returns the placements of a workspace. At the start of the hub a workspace is listed before its
// placements are resolved. indexOf then compiles the placements itself, so that the workspace is not listed
// twice.
func (p *CachePolicy) indexOf(all mailboxes.Reader, cluster logicalcluster.Name) (index *rules.Index, known bool) {
	if found, ok := p.workspaces.Load(cluster); ok {
		return found.(*rules.Index), true
	}
	objects, known := all.List(edgePlacements, cluster)
	if !known {
		return nil, false
	}
	var placements []*rules.Placement
	for _, object := range objects {
		if one, err := parse(object); err == nil {
			placements = append(placements, one)
		}
	}
	slices.SortFunc(placements, (*rules.Placement).Compare)
	isWithin := costLimit()
	placements = slices.DeleteFunc(placements, func(one *rules.Placement) bool { return !isWithin(one) })
	found, _ := p.workspaces.LoadOrStore(cluster, rules.NewIndex(placements))
	return found.(*rules.Index), true
}

// set records the active placements of a workspace.
func (p *CachePolicy) set(cluster logicalcluster.Name, active *placements) {
	p.workspaces.Store(cluster, &active.index)
}

func (p *CachePolicy) forget(cluster logicalcluster.Name) { p.workspaces.Delete(cluster) }

// publish sets the published resources.
func (p *CachePolicy) publish(resources []plan.Resource) {
	published := publishedResources{
		all:      make(map[schema.GroupVersionResource]plan.Resource, len(resources)),
		copies:   make(map[schema.GroupVersionResource]plan.Resource, len(resources)),
		unplaced: unplacedResources(resources),
	}
	for _, resource := range resources {
		source := resource.InWorkload()
		key := source.GroupVersionResource
		if known, ok := published.copies[key]; !ok || !isTwin(known) {
			published.all[key], published.copies[key] = source, resource
		}
		if resource.InstallsCRD && !resource.Unpublishing {
			published.crds = append(published.crds, resource.CRDName())
		}
	}
	p.resources.Store(&published)
}

// isTwin reports whether a published resource is the twin of what workspaces have.
func isTwin(resource plan.Resource) bool {
	return resource.InWorkload().GroupVersionResource != resource.GroupVersionResource
}

// copyOf returns the resource of mailboxes that has the copies of a resource of workspaces: its twin, if that is published, or else the
// same one.
func (p *CachePolicy) copyOf(of schema.GroupVersionResource) schema.GroupVersionResource {
	if copied, ok := p.load().copies[of]; ok {
		return copied.GroupVersionResource
	}
	return of
}

// installsCRD reports whether the hub installs a CRD on targets itself.
func (p *CachePolicy) installsCRD(key objectKey) bool {
	return key.isCRD() && slices.Contains(p.load().crds, key.name.Name)
}

// maxUnplacedResources is the length of the list in the status.
const maxUnplacedResources = 64

// unplacedResources returns the names of the resources of the workload export that cannot be placed, sorted.
func unplacedResources(published []plan.Resource) []string {
	unplaced := map[schema.GroupResource]bool{}
	for _, claim := range bootstrap.WorkloadClaims() {
		unplaced[claim] = true
	}
	for _, resource := range published {
		unplaced[resource.InWorkload().GroupResource()] = !isPlaceable(resource)
	}
	maps.DeleteFunc(unplaced, func(_ schema.GroupResource, is bool) bool { return !is })
	var names []string
	for resource := range unplaced {
		names = append(names, resource.String())
	}
	slices.Sort(names)
	return names[:min(len(names), maxUnplacedResources)]
}

// isPlaceable reports whether placements may select the objects of a published resource.
func isPlaceable(resource plan.Resource) bool { return !resource.RelatedOnly && !resource.Unpublishing }

// load returns what was last published; the zero value before the first publish. The caller must not change it.
func (p *CachePolicy) load() publishedResources {
	if published := p.resources.Load(); published != nil {
		return *published
	}
	return publishedResources{}
}

// published returns the published resources; nil before they are known. The caller must not change them.
func (p *CachePolicy) published() map[schema.GroupVersionResource]plan.Resource { return p.load().all }

// copies returns the resources of mailboxes that have the copies of the published resources. The caller must not change them.
func (p *CachePolicy) copies() map[schema.GroupVersionResource]plan.Resource { return p.load().copies }

// reflectable returns the resources that may have reflections: published ones, and unpublished ones that a config already has. After a start,
// a resource of another export is published only when the hub has discovered it.
func (p *CachePolicy) reflectable(config *edgev2alpha1.SyncerConfig) (resources []schema.GroupResource) {
	published := map[schema.GroupResource]bool{}
	for of, resource := range p.published() {
		published[of.GroupResource()] = true
		if isReflectable(resource) {
			resources = append(resources, of.GroupResource())
		}
	}
	if config == nil {
		return resources
	}
	for _, entry := range config.Spec.Upsync {
		for _, name := range entry.Resources {
			resource := schema.GroupResource{Group: entry.APIGroup, Resource: name}
			if name != edgev2alpha1.Wildcard && !published[resource] && !slices.Contains(resources, resource) {
				resources = append(resources, resource)
			}
		}
	}
	return resources
}

// ofKind returns the published resource of a kind, as workspaces have it.
func (p *CachePolicy) ofKind(kind schema.GroupKind) (resource plan.Resource, ok bool) {
	for of, resource := range p.published() {
		if of.Group == kind.Group && resource.Kind == kind.Kind {
			return resource, true
		}
	}
	return plan.Resource{}, false
}

// placeableCopy returns the resource of mailboxes that has the copies of a resource of workspaces, if that is placeable.
func (p *CachePolicy) placeableCopy(of schema.GroupVersionResource) (copied plan.Resource, ok bool) {
	copied, ok = p.copies()[of]
	return copied, ok && isPlaceable(copied)
}

// placeable returns a published resource as workspaces have it; ok is false if it is not published, if its objects only travel as
// related objects, or if its API is being unpublished.
func (p *CachePolicy) placeable(of schema.GroupVersionResource) (resource plan.Resource, ok bool) {
	resource, ok = p.published()[of]
	return resource, ok && isPlaceable(resource)
}
