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

package explain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/targetversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/inventories"
)

// explainer runs the steps. It observes and plans with the hub's own code, over the facts in place of the hub's caches.
type explainer struct {
	facts *Facts
	stepList

	owner ownership.Owner
	// publishedResource is the PublishedResource in force. It is nil if there is none or it is unknown.
	publishedResource *synchubv1alpha1.PublishedResource
	// compileError is the error of the PublishedResource.
	compileError error
	matcher      *selection.Matcher
	// version says in which version the hub writes objects to the target, and why. It is empty if there is only one
	// version.
	version string
	// planner has the resource: how the hub syncs objects, as far as that is known.
	planner  plan.Planner
	observer *observe.Observer

	// selected is the selection of the object itself by configs, before the filter and without relations.
	selected   selection.Selection
	isSelected bool
	// source is the mark of an upsynced object, which names its original.
	source *ownership.Mark

	targetRef    TargetRef
	targetRefErr error
	// observed is set if the target's object belongs to the hub. Otherwise notOwnedErr says who owns it.
	observed    *plan.TargetObject
	notOwnedErr error

	// down are the facts by which the hub decides about the object and its copy, and planned is its decision. filterErr is set if the
	// filter's answer is unknown; then they are those of an object that passes.
	down      *plan.DownSnapshot
	planned   plan.Plan
	filterErr error
	// up is what the hub decides about the target's object, if the mailbox does not have the object and a config selects it for upsync.
	up *plan.Plan
}

func newExplainer(facts *Facts) *explainer {
	e := &explainer{facts: facts}
	e.owner = ownership.Owner{Hub: e.hub(), SyncTarget: facts.SyncTarget.UID, Sealer: ownership.InsecureSealer}
	e.matcher = selection.Compile(facts.Configs.Value.SyncerConfigs, facts.Configs.Value.EdgeSyncConfigs)
	e.resolvePublishedResource()
	e.chooseVersion()
	e.newObserver()
	if object := facts.Object.Value; object != nil {
		e.source = e.observer.UpsyncMark(object)
		e.selected, e.isSelected = e.resource().Selects(e.matcher, object)
	}
	e.targetRef, e.targetRefErr = e.resolveTargetRef()
	if target := facts.Target.Value; target != nil {
		mark, err := plan.TargetMark(e.owner, target)
		if e.notOwnedErr = err; err == nil {
			e.observed = e.resource().NewTargetObject(e.owner, e.mailbox(), target, mark)
		}
	}
	e.plan()
	return e
}

// newObserver prepares the hub's own code that observes and plans.
func (e *explainer) newObserver() {
	syncTarget, resource := e.facts.SyncTarget, e.resource()
	// Only the hub has the key, so explain compares no hashes.
	hasher := ownership.NewHasher([]byte("explain"))
	e.planner.Down = transform.Down{
		Owner: e.owner, Hasher: hasher, Mailbox: e.mailbox().String(), SyncTarget: syncTarget.Name,
		Resource: resource.GroupResource(), Namespaced: resource.Namespaced,
	}
	e.planner.Up = transform.Up{
		Owner: e.owner, Hasher: hasher, Mailbox: e.mailbox().String(), SyncTarget: syncTarget.Name,
		Resource: resource.GroupResource(), Namespaced: resource.Namespaced, Version: resource.Version, Kind: resource.Kind,
	}
	e.planner.HasContent = func(before *transform.Desired) bool { return len(e.differingPaths(before.Object.Object)) == 0 }
	input := mutation.SyncTarget(syncTarget.Name, syncTarget.Labels, inventories.ParameterAnnotations(syncTarget))
	e.observer = observe.New(observe.Observer{
		Mailbox: (*mailboxFacts)(e), Target: (*targetFacts)(e), Planner: &e.planner,
		Registry: related.NewRegistry(), RequestCompleteness: func(func() bool) {},
		// Primaries are not read, so whether one still claims the object is as unknown as if its PublishedResource were gone.
		IsPublished:     func(string) bool { return false },
		SyncTargetInput: func() map[string]any { return input }, ReadsCopies: true,
	})
}

// plan observes the object and plans as the hub does. It takes an absence as verified, to find out what follows.
func (e *explainer) plan() {
	s := &plan.Snapshot{Key: e.facts.Key, Matcher: e.matcher, InMailbox: e.facts.Object.Value, Readable: e.facts.Object.Err == nil}
	e.down = e.observer.Down(s)
	if e.isSelected && e.down.State == plan.Unknown && errors.Is(e.down.Selection.Unresolved, observe.ErrNotReadable) {
		e.filterErr = e.down.Selection.Unresolved
		rules := *e.planner.Resource.Rules
		rules.Filter = nil
		e.planner.Resource.Rules = &rules
		e.down = e.observer.Down(s)
	}
	e.down.AbsenceVerified = true
	s.Down = e.down
	e.planned = e.planner.PlanDown(s)
	target := e.facts.Target.Value
	if s.InMailbox != nil || target == nil || e.observed != nil || e.facts.Configs.Err != nil {
		return
	}
	if s.Up = e.observer.Up(s, nil, e.targetRef.TargetAPI, target); s.Up.State == plan.Selected {
		up := e.planner.PlanUp(s)
		e.up = &up
	}
}

func (e *explainer) resource() *plan.Resource { return &e.planner.Resource }

func (e *explainer) mailbox() logicalcluster.Name {
	if mailbox := e.facts.SyncTarget.Status.Mailbox; mailbox != nil {
		return logicalcluster.Name(mailbox.Cluster)
	}
	return ""
}

// hub returns the UID of the hub. If the caller did not pass it, hub takes it from a mark that contains the UID of
// the SyncTarget.
func (e *explainer) hub() types.UID {
	if e.facts.Hub != "" {
		return e.facts.Hub
	}
	for _, object := range []*unstructured.Unstructured{e.facts.Target.Value, e.facts.Object.Value} {
		if object == nil {
			continue
		}
		mark, err := ownership.ParseMark(object.GetAnnotations()[ownership.MarkAnnotation])
		if err == nil && mark.SyncTarget == e.facts.SyncTarget.UID {
			return mark.Hub
		}
	}
	return ""
}

// resolvePublishedResource finds the PublishedResource in force, and compiles how the hub syncs objects by it.
func (e *explainer) resolvePublishedResource() {
	api := e.api()
	e.publishedResource = publishedresource.FindOldest(e.facts.Published.Value, publishedresource.InMailbox, e.facts.Resource, api.Kind)
	if e.publishedResource != nil {
		api.Version = cmp.Or(publishedresource.InMailbox(&e.publishedResource.Spec).Version, api.Version)
		if e.planner.Resource, e.compileError = publishedresource.NewCompiler().Compile(e.publishedResource, api); e.compileError == nil {
			return
		}
	}
	e.planner.Resource = publishedresource.RelatedAPI(api)
	// If no PublishedResource could be read, assume that configs select the resource.
	e.planner.Resource.RelatedOnly = e.publishedResource == nil && e.facts.Published.Err == nil
}

// api returns the API in the mailbox, as far as it is known.
func (e *explainer) api() publishedresource.API {
	group := e.facts.Resource
	native, isNative := publishedresource.NativeAPI(synchubv1alpha1.ResourceDescriptor{Group: group.Group, Resource: group.Resource})
	served := e.facts.Served.Value
	switch {
	case served != nil:
		api := *served
		api.Native, api.Exported = isNative, !isNative
		return api
	case isNative:
		return native
	default:
		return publishedresource.API{GroupVersionResource: group.WithVersion(""), Namespaced: e.facts.Key.Namespace != "", Exported: true}
	}
}

// resolveTargetRef returns the location on the target to which the object is downsynced, or from which it was
// upsynced.
func (e *explainer) resolveTargetRef() (TargetRef, error) {
	switch object := e.facts.Object.Value; {
	case e.source != nil:
		from := e.source.Source
		group := schema.GroupResource{Group: from.Group, Resource: from.Resource}
		return TargetRef{e.targetAPIFor(group), types.NamespacedName{Namespace: from.Namespace, Name: from.Name}}, nil
	case object != nil:
		selected := plan.ObjectSelection{Selection: e.selected}
		selected.Policy = cmp.Or(selected.Policy, ownership.PolicyDelete)
		destination, _, err := e.observer.DestinationOf(e.matcher, object, selected, nil)
		if destination.Key.Name != "" {
			// The hub may not use the place, which is known nevertheless.
			err = nil
		}
		return TargetRef{destination.API, destination.Key}, err
	case e.resource().GetRules().Naming != nil:
		return TargetRef{}, errors.New("its name there is made of the object in the mailbox, which is not there")
	default:
		return TargetRef{e.resource().TargetAPI(), e.facts.Key}, nil
	}
}

// targetAPIFor returns the API of a resource on the target.
func (e *explainer) targetAPIFor(group schema.GroupResource) plan.TargetAPI {
	if same := e.resource().TargetAPI(); same.GroupResource() == group {
		return same
	}
	return plan.TargetAPI{GroupVersionResource: group.WithVersion(e.lastVersion(group))}
}

// lastVersion returns the version in which the hub last used a resource of the target. It is empty if unknown.
func (e *explainer) lastVersion(group schema.GroupResource) string {
	for _, recorded := range e.facts.SyncTarget.Status.SyncedResources {
		if recorded.Group == group.Group && recorded.Resource == group.Resource && len(recorded.Versions) > 0 {
			return recorded.Versions[0]
		}
	}
	return ""
}

// chooseVersion finds the version in which the hub writes objects to the target, if there are several. The version
// that the hub used last shows which versions the target serves.
func (e *explainer) chooseVersion() {
	all := e.resource().TargetVersions()
	if served := e.facts.Served.Value; served != nil && e.publishedResource == nil {
		all = served.Versions
	}
	if len(all) < 2 {
		return
	}
	var by selection.NamedVersion
	if named := e.resource().NamedVersions(e.matcher); len(named) > 0 {
		by = named[0]
	}
	choice := targetversion.Choose(all, by.Version, targetversion.Target{Previous: e.lastVersion(e.resource().TargetAPI().GroupResource())})
	e.planner.Resource = e.resource().WithTargetVersion(choice.Version)
	switch choice.Reason {
	case targetversion.Named:
		e.version = fmt.Sprintf("on the cluster in version %s, which %s of %s names", choice.Version, by.Field, by.Config)
	case targetversion.Newest:
		e.version = fmt.Sprintf("on the cluster in version %s, since it does not serve %s", choice.Version, all[0])
	default:
		e.version = fmt.Sprintf("on the cluster in version %s, which is preferred to %s", choice.Version, strings.Join(all[1:], ", "))
	}
}

// relation returns the relation by which the hub downsynced the object. It is empty for an object that was selected
// itself.
func (e *explainer) relation() string {
	if e.observed != nil {
		return e.observed.Mark.Relation
	}
	return ""
}

// goesDown reports whether the hub downsyncs the object because of its own selection.
func (e *explainer) goesDown() bool {
	return e.facts.Object.Value != nil && e.isMailboxReadable() && (e.down.State == plan.Selected || e.down.Err != nil)
}

// isExcluded reports whether the object does not go down because its place on the target is selected for upsync.
func (e *explainer) isExcluded() bool { return e.planned.Decision.Cause == plan.ExcludedByUpsync }

// belongsOnTarget reports whether the object belongs on the target.
func (e *explainer) belongsOnTarget() bool {
	return e.goesDown() && !e.isExcluded() || e.facts.Object.Value != nil && e.relation() != ""
}

// relatedEntries returns "<PublishedResource>/<identifier>" of each entry of related that can select objects of the
// resource.
func (e *explainer) relatedEntries() (names []string) {
	for _, candidate := range e.facts.Published.Value {
		related, _ := related.Compile(candidate.Spec.Related)
		for _, one := range related {
			if one != nil && one.Origin == synchubv1alpha1.RelatedOriginMailbox && one.InMailbox.GroupResource() == e.facts.Resource {
				names = append(names, candidate.Name+"/"+one.Identifier)
			}
		}
	}
	slices.Sort(names)
	return names
}
